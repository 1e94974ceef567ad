/** Designed for paper first: A4, light colours only, no information carried by colour alone. */
export const REPORT_STYLE = `
:root{color-scheme:only light;--ink:#1b1f24;--soft:#5a6470;--line:#cfd6dd;--fill:#f4f6f8;--deep:#12395b}
*{box-sizing:border-box}
html{background:#e9edf0}
body{margin:0 auto;max-width:210mm;padding:16mm 15mm;background:#fff;color:var(--ink);
font:10pt/1.45 "Helvetica Neue",Helvetica,Arial,"Liberation Sans","Segoe UI",system-ui,sans-serif}
h1{font-size:27pt;line-height:1.15;margin:0 0 3mm;color:var(--deep);letter-spacing:-.01em}
h2{font-size:14.5pt;margin:0 0 3mm;color:var(--deep);break-after:avoid}
p{margin:0 0 3mm}
code{font:.86em/1.35 ui-monospace,"SFMono-Regular",Consolas,"Liberation Mono",monospace;overflow-wrap:anywhere}
body>section{margin-top:11mm}
.cover .kind{text-transform:uppercase;letter-spacing:.09em;font-size:9pt;font-weight:600;color:var(--soft);
border-top:2.2mm solid var(--deep);padding-top:7mm;margin:0 0 4mm}
.cover .lead{font-size:12.5pt;color:var(--soft);margin-bottom:7mm}
dl{display:grid;grid-template-columns:32mm 1fr;margin:0 0 8mm;border-top:1px solid var(--line)}
dt,dd{margin:0;padding:1.5mm 0;border-bottom:1px solid var(--line);min-width:0}
dt{color:var(--soft)}
.boxes{padding-right:.3mm;display:grid;grid-template-columns:1fr 1fr;gap:4mm}.boxes .wide{grid-column:1/-1}
.boxes section{border:1px solid var(--line);border-left:1.2mm solid var(--deep);padding:4mm 5mm 2mm;background:var(--fill);break-inside:avoid}
.boxes h2{font-size:11.5pt;margin-bottom:1.5mm}
.tiles{list-style:none;margin:0 0 6mm;padding:0 .3mm 0 0;display:grid;grid-template-columns:repeat(5,1fr);gap:2.5mm}
.tiles li{border:1px solid var(--line);padding:2.4mm 3mm;font-size:8.5pt;line-height:1.25;color:var(--soft);break-inside:avoid}
.tiles b{display:block;font-size:15.5pt;line-height:1.25;color:var(--ink);font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
table{width:100%;border-collapse:collapse;margin:0 0 2mm;font-size:8.6pt;line-height:1.35}
caption{text-align:left;font-weight:600;font-size:10.5pt;padding:2.5mm 0 1.5mm;break-after:avoid}
thead{display:table-header-group}
th,td{padding:1.3mm 3.5mm 1.3mm 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;overflow-wrap:break-word}
thead th{border-bottom:1.5px solid var(--ink);font-weight:600;font-size:8.4pt;vertical-align:bottom;overflow-wrap:normal}
tr{break-inside:avoid}
tbody tr:first-child,tbody tr:nth-child(2){break-before:avoid}
th:last-child,td:last-child{padding-right:0}
.n{text-align:right;font-variant-numeric:tabular-nums}
td.n,td.t{white-space:nowrap}
td.t{font-variant-numeric:tabular-nums;font-size:8.3pt}
.soft,.unit,.more{color:var(--soft)}
.more{font-size:8.8pt;margin-bottom:5mm}
.none{border:1px dashed var(--line);padding:2.5mm 4mm;color:var(--soft);margin:2mm 0 4mm}
figure{margin:0 0 6mm;break-inside:avoid}
figcaption{font-weight:600;margin-bottom:1.5mm}
.unit{font-weight:400;font-size:8.8pt;margin-left:2mm}
figure>svg{display:block;width:100%;height:auto}
.grid{stroke:#dfe4e8;stroke-width:1}
.tick{font-size:10px;fill:#5a6470}
.s0{fill:#12395b}.s1{fill:#c2571a}.s2{fill:#7fb2d9}.s3{fill:#8c1c13}.s4{fill:#5c8f3a}.s5{fill:#a5adb5}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:1mm 5mm;margin:1.5mm 0 0;padding:0;font-size:8.8pt}
.legend svg{width:2.6mm;height:2.6mm;margin-right:1.4mm;vertical-align:-.2mm}
.mapping table{table-layout:fixed}
.mapping thead th:first-child{width:37%}.mapping thead th:nth-child(2){width:37%}
.mapping tbody th{font-weight:600}
.mapping q{display:block;font-weight:400;color:var(--soft);font-size:8.3pt;margin-top:.8mm;padding-right:2mm}
.mapping td{padding-right:4mm}
footer{margin-top:12mm;border-top:1px solid var(--line);padding-top:3mm;color:var(--soft);font-size:8.8pt}
@page{size:A4;margin:16mm 15mm 17mm;@bottom-left{content:"Evidence supporting human oversight";font:8pt sans-serif;color:#5a6470}
@bottom-right{content:counter(page) " / " counter(pages);font:8pt sans-serif;color:#5a6470}}
@media print{html{background:#fff}body{max-width:none;padding:0;margin:0}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
body>section.newpage,.cover+section{break-before:page;margin-top:0}}
@media screen and (max-width:700px){body{padding:6mm 4mm}.tiles{grid-template-columns:repeat(2,1fr)}dl{grid-template-columns:1fr}
dt{border-bottom:0;padding-bottom:0}body>section{overflow-x:auto}}
`;
