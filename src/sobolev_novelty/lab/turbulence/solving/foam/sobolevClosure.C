/*---------------------------------------------------------------------------*\
  sobolevClosure: the standard k-epsilon model with an added stress

      a = alpha1 k b,   b = sum c x1^p x2^q T_channel,   x = tanh(I/2)

  whose terms are read from the case, so one build serves every closure:

      sobolevClosureCoeffs
      {
          alpha1        0.7;
          closureTerms  ( (channel p q c) ... );     // channel 0, 1, 2
      }

  k, epsilon and nut stay as read; b is evaluated once from the velocity as
  read. The stress is zero on walls.

  This file is compiled against OpenFOAM's headers and linked with its
  libraries; the resulting library falls under the GNU General Public License,
  version 3 or later.
\*---------------------------------------------------------------------------*/

#include "IncompressibleTurbulenceModel.H"
#include "incompressible/transportModel/transportModel.H"
#include "addToRunTimeSelectionTable.H"
#include "makeTurbulenceModel.H"
#include "laminarModel.H"
#include "RASModel.H"
#include "LESModel.H"
#include "kEpsilon.H"
#include "fvCFD.H"

namespace Foam
{
namespace RASModels
{

template<class BasicTurbulenceModel>
class sobolevClosure
:
    public kEpsilon<BasicTurbulenceModel>
{
    volSymmTensorField a_;

    void setStress();

public:

    typedef typename BasicTurbulenceModel::alphaField alphaField;
    typedef typename BasicTurbulenceModel::rhoField rhoField;
    typedef typename BasicTurbulenceModel::transportModel transportModel;

    TypeName("sobolevClosure");

    sobolevClosure
    (
        const alphaField& alpha,
        const rhoField& rho,
        const volVectorField& U,
        const surfaceScalarField& alphaRhoPhi,
        const surfaceScalarField& phi,
        const transportModel& transport,
        const word& propertiesName = turbulenceModel::propertiesName,
        const word& type = typeName
    )
    :
        kEpsilon<BasicTurbulenceModel>
        (
            alpha, rho, U, alphaRhoPhi, phi, transport, propertiesName, type
        ),
        a_
        (
            IOobject("closureStress", this->runTime_.timeName(), this->mesh_),
            this->mesh_,
            dimensionedSymmTensor(dimVelocity*dimVelocity, Zero)
        )
    {
        setStress();
    }

    virtual ~sobolevClosure() = default;

    virtual tmp<fvVectorMatrix> divDevRhoReff(volVectorField& U) const
    {
        return kEpsilon<BasicTurbulenceModel>::divDevRhoReff(U) + fvc::div(a_);
    }

    // k, epsilon and nut are frozen
    virtual void correct()
    {}
};


template<class BasicTurbulenceModel>
void sobolevClosure<BasicTurbulenceModel>::setStress()
{
    const scalar alpha1(this->coeffDict_.template get<scalar>("alpha1"));
    const List<FixedList<scalar, 4>> terms(this->coeffDict_.lookup("closureTerms"));

    const tmp<volTensorField> tgradU(fvc::grad(this->U_));
    const tensorField& gradU = tgradU().primitiveField();
    symmTensorField& a = a_.primitiveFieldRef();

    forAll(a, i)
    {
        const scalar T = this->k_[i]/this->epsilon_[i];
        const symmTensor S = T*symm(gradU[i]);
        // OpenFOAM's gradient is d_i u_j; R is built from du_i/dx_j.
        const tensor R = -T*skew(gradU[i]);
        const symmTensor S2 = symm(S & S);
        const symmTensor basis[3] =
        {
            S, symm((S & R) - (R & S)), S2 - (tr(S2)/3)*symmTensor::I
        };
        const scalar x1 = tanh(0.5*tr(S2));
        const scalar x2 = tanh(0.5*tr(R & R));
        symmTensor b(Zero);
        forAll(terms, t)
        {
            const FixedList<scalar, 4>& term = terms[t];
            b += (term[3]*std::pow(x1, term[1])*std::pow(x2, int(term[2])))*basis[label(term[0])];
        }
        a[i] = alpha1*this->k_[i]*b;
    }

    a_.correctBoundaryConditions();
}

} // End namespace RASModels
} // End namespace Foam

makeTurbulenceModelTypes
(
    geometricOneField,
    geometricOneField,
    incompressibleTurbulenceModel,
    IncompressibleTurbulenceModel,
    transportModel
);

makeTemplatedTurbulenceModel
(
    transportModelIncompressibleTurbulenceModel, RAS, sobolevClosure
);
