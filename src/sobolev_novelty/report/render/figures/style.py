"""The style sheet of the page and of the notebook fragment; every rule begins with ``.sn`` and touches nothing else."""

from __future__ import annotations

#: Blue and orange keep a contrast of at least 4.5 with the background in both schemes, also for the colour-blind; so do
#: the numbers of the matrix with the strongest orange (``--strong``) beneath them.
STYLE = """
.sn{--paper:#fdfdfb;--card:#fff;--ink:#1d2125;--soft:#565d66;--line:#e3e4e1;--track:#ebece9;--high:#0b62a4;
--low:#b3470b;
--high-bg:#e6f0f8;--low-bg:#fbece1;--on:#fff;--strong:.7;
color-scheme:light dark;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;box-sizing:border-box;
container-type:inline-size;
-webkit-text-size-adjust:100%}
@media (prefers-color-scheme:dark){.sn{--paper:#14171a;--card:#1b1f23;--ink:#e8eaec;--soft:#a4acb4;--line:#2e343a;
--track:#2a3036;
--high:#6cb6f5;--low:#f2a164;--high-bg:#152b3d;--low-bg:#39251a;--on:#14171a;--strong:.45}}
.sn *{box-sizing:border-box}
.sn table{color:var(--ink)}
.sn .wrap{max-width:66rem;margin:0 auto;padding:1.5rem 1.25rem 2.5rem}
.sn h1{font-size:clamp(1.5rem,4.5vw,2.2rem);line-height:1.2;letter-spacing:-.015em;margin:.2rem 0 .6rem;
font-weight:700;text-wrap:balance;color:var(--ink)}
.sn h2{font-size:1.15rem;margin:2.2rem 0 .6rem;font-weight:650;color:var(--ink)}
.sn p{margin:.4rem 0;max-width:44rem}
.sn .eyebrow{color:var(--soft);font-size:.8rem;letter-spacing:.08em;text-transform:uppercase;margin:0}
.sn .lead{font-size:1.08rem;overflow-x:auto}
.sn code{font:.92em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
overflow-wrap:anywhere;background:none;color:inherit;padding:0}
.sn math{font-size:1.08em;color:var(--ink)}
.sn .equation{background:var(--card);border:1px solid var(--line);border-radius:.75rem;padding:1rem 1.15rem;
margin:1.1rem 0;overflow-x:auto}
.sn math{white-space:nowrap}
.sn .equation .set{font-size:1.15rem;line-height:2.1}
.sn .equation code{display:block;color:var(--soft);font-size:.8rem;margin-top:.35rem}
.sn dl.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.75rem;margin:1rem 0}
.sn dl.facts div{background:var(--card);border:1px solid var(--line);border-radius:.75rem;padding:.7rem .9rem}
.sn dt{color:var(--soft);font-size:.8rem;margin:0}
.sn dd{margin:0;font-size:1.25rem;font-weight:650;font-variant-numeric:tabular-nums}
.sn table.terms{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums;background:none;border:0;
margin:0}
.sn table.terms th,.sn table.terms td{padding:.6rem .45rem;text-align:right;border:0;
border-bottom:1px solid var(--line);vertical-align:middle;background:none;color:inherit;font-size:.95rem}
.sn table.terms thead th{color:var(--soft);font-size:.8rem;font-weight:500;white-space:nowrap}
.sn table.terms th small{display:block;font-weight:400;font-size:.74rem}
.sn table.terms th.term,.sn table.terms .word{text-align:left}
.sn table.terms tbody th.term{font-weight:500;min-width:7rem;overflow-wrap:anywhere}
.sn table.terms .place{color:var(--soft);font-size:.8rem;display:inline-block;min-width:1.6em;font-weight:400}
.sn table.terms .name{display:flex;align-items:center;gap:.4rem;overflow-x:auto;max-width:24rem}
.sn table.terms td{white-space:nowrap}
.sn .bar{display:block;width:100%;min-width:7rem;max-width:11rem;height:20px}
.sn .track{fill:var(--track)}.sn .high{fill:var(--high)}.sn .low{fill:var(--low)}
.sn .threshold{stroke:var(--ink);stroke-width:2;fill:none;vector-effect:non-scaling-stroke;stroke-dasharray:3 2}
.sn .whisker{stroke:var(--ink);stroke-width:1.5;fill:none;vector-effect:non-scaling-stroke}
.sn .nu{font-weight:650}
.sn .beneath{display:block;color:var(--soft);font-size:.8rem;font-weight:400;white-space:nowrap}
.sn .word .beneath{margin:.1rem 0 0 .55rem}.sn .word .bar{margin-left:.1rem}
.sn .fits{display:grid;grid-template-columns:repeat(auto-fit,minmax(15rem,1fr));gap:1rem;margin:.8rem 0}
.sn figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:.75rem;padding:.8rem}
.sn figcaption{color:var(--soft);font-size:.8rem;line-height:1.4}.sn figcaption strong{color:var(--ink)}
.sn .fit{display:block;width:100%;height:auto}
.sn .fit text{font-size:11px;fill:var(--soft)}.sn .fit .name,.sn .fit .label{fill:var(--ink)}
.sn .fit .label{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.sn .fit .frame{stroke:var(--soft);stroke-width:1;fill:none}.sn .fit .spread{fill:var(--soft)}
.sn .fit .dots{stroke:var(--high);stroke-opacity:.55;stroke-width:4;stroke-linecap:round;fill:none}
.sn details{margin:1.6rem 0 0}.sn summary{cursor:pointer;font-weight:650}
.sn .badge{display:inline-block;padding:.1rem .55rem;border-radius:99px;font-size:.82rem;font-weight:600;
white-space:nowrap}
.sn .badge.high{background:var(--high-bg);color:var(--high)}.sn .badge.low{background:var(--low-bg);color:var(--low)}
.sn .badge.none{background:var(--track);color:var(--soft)}
.sn ul.plain{list-style:none;padding:0;margin:.5rem 0}
.sn ul.plain li{border-left:3px solid var(--low);padding:.25rem 0 .25rem .9rem;margin:.7rem 0;overflow-x:auto}
.sn ul.notes li{border-color:var(--soft)}
.sn .left{display:block;color:var(--soft);font-size:.86rem}
.sn .scroll{overflow-x:auto;padding:.3rem 0}
.sn .matrix{display:block;max-width:none}
.sn .matrix text{font-size:12px;fill:var(--ink)}
.sn .matrix .label{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.sn .matrix .index{fill:var(--soft)}.sn .matrix .share{font-size:11px}.sn .matrix .low{opacity:var(--strong)}
.sn .matrix .self{stroke:var(--line);stroke-width:1.5}
.sn .small{color:var(--soft);font-size:.9rem}
.sn footer{border-top:1px solid var(--line);margin-top:2.5rem;padding-top:1rem}
.sn section.case{border-top:1px solid var(--line);margin-top:2.5rem}
.sn pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--card);border:1px solid var(--line);
border-radius:.75rem;padding:1rem;font:.85rem/1.5 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;
color:inherit}
@container (max-width:68rem){.sn .wrap{padding:1.1rem 1rem 2rem}
.sn table.terms thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.sn table.terms{display:block}.sn table.terms tbody{display:grid;gap:.7rem;
grid-template-columns:repeat(auto-fill,minmax(min(100%,18rem),1fr))}
.sn table.terms tr{display:block;background:var(--card);border:1px solid var(--line);border-radius:.75rem;
padding:.8rem .95rem;margin:0;min-width:0}
.sn table.terms th,.sn table.terms td{display:block;border:0;padding:.15rem 0;text-align:left}
.sn table.terms th.term{min-width:0;padding-bottom:.4rem}
.sn table.terms td[data-name]{display:grid;grid-template-columns:1fr auto;align-items:center;gap:.1rem .8rem;
font-size:.9rem;white-space:normal;text-align:right}
.sn table.terms td[data-name]::before{content:attr(data-name);color:var(--soft);text-align:left}
.sn table.terms td.word .badge{justify-self:end}.sn table.terms td.word .bar{grid-column:1/-1;grid-row:2;max-width:none}
.sn table.terms td.word .beneath{grid-column:1/-1;margin:0}.sn table.terms td.word .beneath:nth-child(1){grid-column:2}
.sn table.terms .name{max-width:none}}
@media print{.sn{--paper:#fff}.sn .equation,.sn table.terms tr{break-inside:avoid}}
"""
