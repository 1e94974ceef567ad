import { sha256 } from "../../tree-hash.ts";
import { cover, periodOf } from "./cover.ts";
import type { ReportFacts } from "./facts.ts";
import { Html, html } from "./html.ts";
import { mappingSection } from "./mapping.ts";
import { operationSection } from "./operation.ts";
import { decisionsSection, overseersSection } from "./people.ts";
import { recordSection } from "./record.ts";
import { REPORT_STYLE } from "./style.ts";
import { summary } from "./summary.ts";
import { troubleSection } from "./trouble.ts";

/** `report.html`: for people, on screen or on paper. It loads no resources and runs no scripts. */
export function reportPage(facts: ReportFacts): string {
  const { about, oldestEntry } = facts;
  const styleHash = sha256(new TextEncoder().encode(REPORT_STYLE)).toBase64();
  const policy = `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Human oversight report: ${about.workspace}, ${periodOf(about, oldestEntry)}</title>
<style>${new Html(REPORT_STYLE)}</style>
</head>
<body>
${cover(facts)}
${summary(facts)}
${overseersSection(facts)}
${decisionsSection(facts)}
${operationSection(facts)}
${troubleSection(facts)}
${recordSection(facts)}
${mappingSection(facts)}
<footer>Made by ${about.program.name} ${about.program.version} from the ledger <code>${about.origin}</code>. ${about.statement}</footer>
</body>
</html>
`.toString();
}
