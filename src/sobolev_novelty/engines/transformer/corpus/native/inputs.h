/* Where a formula is sampled: X[j * N_POINTS + i] is input j at point i. */
#pragma once
#include "corpus.h"

/* One cluster: centre N(0, I), variances U(0, 1), a Haar rotation (Gram-Schmidt of a Gaussian matrix). */
typedef struct { double centre[MAX_DIM], deviation[MAX_DIM], rotation[MAX_DIM][MAX_DIM]; } Cluster;

static void draw_cluster(Random *r, int dim, Cluster *c) {
    for (int j = 0; j < dim; j++) { c->centre[j] = normal(r); c->deviation[j] = sqrt(uniform(r)); }
    for (int a = 0; a < dim; a++) {
        double *row = c->rotation[a], norm = 0;
        for (int j = 0; j < dim; j++) row[j] = normal(r);
        for (int b = 0; b < a; b++) {
            double s = 0;
            for (int j = 0; j < dim; j++) s += row[j] * c->rotation[b][j];
            for (int j = 0; j < dim; j++) row[j] -= s * c->rotation[b][j];
        }
        for (int j = 0; j < dim; j++) norm += row[j] * row[j];
        norm = 1 / sqrt(norm);
        for (int j = 0; j < dim; j++) row[j] *= norm;
    }
}
static void whiten(double *x, int n) {
    double mean = 0, variance = 0;
    for (int i = 0; i < n; i++) mean += x[i];
    mean /= n;
    for (int i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean);
    double scale = 1 / sqrt(variance / n + 1e-30);
    for (int i = 0; i < n; i++) x[i] = (x[i] - mean) * scale;
}
/* E2ESR's inputs: a mixture of 1 to 9 Gaussian or uniform clusters, each feature whitened. */
static void inputs_mixture(Random *r, int dim, int n, double *X) {
    Cluster cluster[9];
    double weight[9];
    int n_clusters = 1 + below(r, 9), is_gaussian = uniform(r) < 0.5;
    for (int c = 0; c < n_clusters; c++) { weight[c] = uniform(r); draw_cluster(r, dim, &cluster[c]); }
    for (int i = 0; i < n; i++) {
        const Cluster *c = &cluster[pick(r, weight, n_clusters)];
        double z[MAX_DIM];
        for (int a = 0; a < dim; a++) z[a] = c->centre[a] + c->deviation[a] * (is_gaussian ? normal(r) : 2 * uniform(r) - 1);
        for (int j = 0; j < dim; j++) {
            double s = 0;
            for (int a = 0; a < dim; a++) s += z[a] * c->rotation[a][j];
            X[j * N_POINTS + i] = s;
        }
    }
    for (int j = 0; j < dim; j++) whiten(X + j * N_POINTS, n);
}
static void move_and_scale(Random *r, int dim, int n, double *X) {
    for (int j = 0; j < dim; j++) {
        double s = log_uniform(r, 0.3, 5), m = 2 * s * normal(r);
        for (int i = 0; i < n; i++) X[j * N_POINTS + i] = m + s * X[j * N_POINTS + i];
    }
}
static void inputs_box(Random *r, int dim, int n, double *X, double low, double high) {
    for (int j = 0; j < dim; j++)
        for (int i = 0; i < n; i++) X[j * N_POINTS + i] = low + (high - low) * uniform(r);
}
static void inputs_boxes(Random *r, int dim, int n, double *X) {
    for (int j = 0; j < dim; j++) {
        double u = uniform(r), low = u < .7 ? log_uniform(r, .1, 5) : u < .9 ? 0 : -log_uniform(r, .5, 5);
        double width = log_uniform(r, .5, 10);
        for (int i = 0; i < n; i++) X[j * N_POINTS + i] = low + width * uniform(r);
    }
}
/* Magnitudes log-uniform over half a decade to three, centred near 1; some inputs with both signs. */
static void inputs_log_boxes(Random *r, int dim, int n, double *X) {
    for (int j = 0; j < dim; j++) {
        double decades = log_uniform(r, .5, 3), centre = .5 * normal(r);
        int both_signs = uniform(r) < 0.15;
        for (int i = 0; i < n; i++) {
            double x = pow(10.0, centre + decades * (uniform(r) - .5));
            X[j * N_POINTS + i] = both_signs && uniform(r) < .5 ? -x : x;
        }
    }
}
/* Points on one to four smooth trajectories; some inputs are the time itself. */
static void inputs_curves(Random *r, int dim, int n, double *X) {
    int n_curves = 1 + below(r, 4), clock = uniform(r) < .3 ? below(r, dim) : -1;
    double duration = log_uniform(r, 2, 40), level[MAX_DIM], rate[MAX_DIM], decay[MAX_DIM];
    for (int j = 0; j < dim; j++) {
        level[j] = uniform(r) < .5 ? log_uniform(r, .2, 5) : normal(r);
        rate[j] = 6.283185307179586 * log_uniform(r, .3, 6) / duration;
        decay[j] = uniform(r) < .5 ? 0 : log_uniform(r, .3, 5) / duration;
    }
    for (int k = 0; k < n_curves; k++) {
        double size[MAX_DIM], phase[MAX_DIM], slope[MAX_DIM];
        for (int j = 0; j < dim; j++) {
            size[j] = fabs(level[j]) * log_uniform(r, .2, 1.5);
            phase[j] = 6.283185307179586 * uniform(r);
            slope[j] = uniform(r) < .3 ? level[j] * normal(r) / duration : 0;
        }
        for (int i = k; i < n; i += n_curves) {
            double time = duration * uniform(r);
            for (int j = 0; j < dim; j++) {
                double x = level[j] + slope[j] * time + size[j] * exp(-decay[j] * time) * sin(rate[j] * time + phase[j]);
                X[j * N_POINTS + i] = j == clock ? time : x;
            }
        }
    }
}
static void sample_inputs(Random *r, int kind, int dim, int n, double *X) {
    switch (kind) {
    case WHITENED: inputs_mixture(r, dim, n, X); break;
    case MOVED: inputs_mixture(r, dim, n, X); move_and_scale(r, dim, n, X); break;
    case SHARED_BOX: inputs_box(r, dim, n, X, 1, 2 + below(r, 4)); break;
    case BOXES: inputs_boxes(r, dim, n, X); break;
    case LOG_BOXES: inputs_log_boxes(r, dim, n, X); break;
    case CURVES: inputs_curves(r, dim, n, X); break;
    default: inputs_box(r, dim, n, X, 1, 5);
    }
}
