export const PAGE_STYLE = `
:root{color-scheme:only light;--ink:#1b1f24;--soft:#5a6470;--line:#cfd6dd;--deep:#12395b}
*{box-sizing:border-box}
body{margin:0 auto;max-width:46rem;padding:2.5rem 1.25rem 4rem;color:var(--ink);background:#fff;
font:16px/1.5 "Segoe UI",system-ui,-apple-system,"Helvetica Neue",Arial,"Liberation Sans",sans-serif}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .5rem;color:var(--deep)}
h2{font-size:1.35rem;margin:0 0 .4rem}
code{font:.87em ui-monospace,Consolas,"Liberation Mono",monospace;overflow-wrap:anywhere}
.warning{border-left:4px solid #c2571a;background:#fdf5ef;padding:.8rem 1rem;margin:1.2rem 0}
.drop{display:block;border:2px dashed #8b98a5;border-radius:6px;padding:2rem 1rem;text-align:center;cursor:pointer}
.drop.over,.drop:focus-within{border-color:var(--deep);background:#f0f5fa}
.drop input{display:block;margin:.8rem auto 0;max-width:100%}
.drop b{overflow-wrap:anywhere}
details{margin:1rem 0}
summary{cursor:pointer}
details label{display:block;margin:.8rem 0 .25rem;font-weight:600}
textarea{width:100%;min-height:4.2rem;font:13px/1.4 ui-monospace,Consolas,monospace;padding:.5rem;border:1px solid #8b98a5;border-radius:4px}
button{font:inherit;font-weight:600;padding:.55rem 1.4rem;border:0;border-radius:4px;background:var(--deep);color:#fff;cursor:pointer}
button:disabled{background:#a5adb5;cursor:default}
.result{border:1px solid var(--line);border-top:6px solid #a5adb5;border-radius:4px;padding:1rem 1.2rem;margin-top:1.5rem}
.result.holds{border-top-color:#2f7d3b}.result.holds h2{color:#235f2d}
.result.tampered{border-top-color:#b3261e}.result.tampered h2{color:#8c1c13}
.result.undecided{border-top-color:#b7791f}.result.undecided h2{color:#7d5211}
.findings{padding-left:1.3rem}.findings li{margin:.4rem 0}.findings code{color:var(--soft)}
dl{display:grid;grid-template-columns:10rem 1fr;border-top:1px solid var(--line);margin:1rem 0 0;font-size:.92rem}
dt,dd{margin:0;padding:.35rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere;min-width:0}
dt{color:var(--soft);padding-right:1rem}
@media (max-width:34rem){dl{grid-template-columns:1fr}dt{border-bottom:0;padding-bottom:0}}
`;
