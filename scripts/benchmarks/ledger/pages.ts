import { type Aim, alone, type Figure } from "../figures.ts";
import { requestText } from "../load/request.ts";
import { alternate } from "../rounds.ts";
import { settings } from "../setup.ts";
import type { Round, Workshop } from "../workshop.ts";
import { COMMON_ACTION, RARE_AGENT } from "./entries.ts";
import { AIMED, filledLedger, sizeText } from "./filled.ts";

const LONGEST: Aim = { of: "gatehouse", relation: "<", value: 3 };
const LIMIT = 50;

/** A page of 50 entries among many, with various filters. */
export async function pages(workshop: Workshop): Promise<Figure[]> {
  const ledger = await filledLedger(workshop);
  const half = new Date(ledger.timeOf(Math.floor(ledger.size / 2))).toISOString();
  const rare = `agent=${RARE_AGENT}`;
  const common = `action=${COMMON_ACTION}`;
  const asked: Readonly<Record<string, readonly [label: string, query: string]>> = {
    newest: ["the newest", "order=desc"],
    common: [`${COMMON_ACTION}, oldest first`, common],
    common_newest: [`${COMMON_ACTION}, newest first`, `${common}&order=desc`],
    common_later: [`${COMMON_ACTION}, from the middle on`, `${common}&from=${half}`],
    rare: ["an agent with 1 of 5,000, oldest first", rare],
    rare_newest: ["an agent with 1 of 5,000, newest first", `${rare}&order=desc`],
    both: ["this agent's model calls, oldest first", `${rare}&${common}`],
    both_newest: ["this agent's model calls, newest first", `${rare}&${common}&order=desc`],
    nobody: ["an agent that no entry has", "agent=nobody"],
  };
  const gatehouse = await workshop.gatehouse({ yaml: settings(), dataDir: ledger.dataDir });
  const contenders: Record<string, () => Promise<Round>> = {};
  for (const [name, [, query]] of Object.entries(asked)) {
    const job = {
      request: requestText("GET", `/v1/ledger?limit=${LIMIT}&${query}`, { token: gatehouse.admin }),
      connections: 1,
      spreadMs: 0,
      expect: { status: 200, texts: [name === "nobody" ? '"data":[]' : '"data":[{', '"next_cursor":'] },
    };
    contenders[name] = () => workshop.load(gatehouse, job, workshop.seconds / 2);
  }
  const rounds = await alternate(contenders, workshop.rounds);
  await gatehouse.stop();
  const aim = ledger.size >= AIMED ? LONGEST : undefined;
  return Object.entries(asked).flatMap(([name, [label]], index) => {
    const lead = index === 0 ? `page of ${LIMIT} among ${sizeText(ledger)}: ` : `page of ${LIMIT}: `;
    const values = (of: "p50" | "p99") => rounds.map((round) => round[name]?.[of] ?? null);
    return [
      alone({ id: `ledger.page.${name}.p50`, label: `${lead}${label}, p50`, unit: "ms" }, values("p50"), aim),
      alone({ id: `ledger.page.${name}.p99`, label: "  p99", unit: "ms" }, values("p99")),
    ];
  });
}
