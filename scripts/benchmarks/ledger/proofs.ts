import { type Aim, alone, type Figure } from "../figures.ts";
import { requestText } from "../load/request.ts";
import { alternate } from "../rounds.ts";
import { settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { AIMED, filledLedger, sizeText } from "./filled.ts";
import { proofsResult } from "./jobs.ts";

const LONGEST: Aim = { of: "gatehouse", relation: "<", value: 1 };
/** Different entries requested over REST. */
const ASKED = 1_000;

/** An inclusion proof of any entry, with a newly signed tree head: the function by itself, and over REST. */
export async function proofs(workshop: Workshop): Promise<Figure[]> {
  const ledger = await filledLedger(workshop);
  const aim = ledger.size >= AIMED ? LONGEST : undefined;
  const among = `proof of an entry among ${sizeText(ledger)}`;

  const worker = workshop.worker("ledger/worker.ts");
  const ask = { kind: "proofs", dataDir: ledger.dataDir, seconds: workshop.seconds };
  const alones = await alternate({ function: () => worker.ask(ask, proofsResult) }, workshop.rounds);
  await worker.end();

  const gatehouse = await workshop.gatehouse({ yaml: settings(), dataDir: ledger.dataDir });
  const seqs = Array.from({ length: ASKED }, () => 1 + Math.floor(Math.random() * ledger.size));
  const job = {
    request: [seqs.map((seq) => requestText("GET", `/v1/ledger/${seq}/proof`, { token: gatehouse.admin }))],
    connections: 1,
    spreadMs: 0,
    expect: { status: 200, texts: ['"inclusion":["', '"checkpoint":"gatehouse/'] },
  };
  const rounds = await alternate({ rest: () => workshop.load(gatehouse, job) }, workshop.rounds);
  await gatehouse.stop();
  const values = (of: "p50" | "p99") => ({
    function: alones.map((round) => round.function[of]),
    rest: rounds.map((round) => round.rest[of]),
  });
  return [
    alone({ id: "ledger.proof.p50", label: `${among}, p50`, unit: "ms" }, values("p50").function, aim),
    alone({ id: "ledger.proof.p99", label: "  p99", unit: "ms" }, values("p99").function),
    alone({ id: "ledger.proof.rest.p50", label: "  over REST, p50", unit: "ms" }, values("p50").rest, aim),
    alone({ id: "ledger.proof.rest.p99", label: "  over REST, p99", unit: "ms" }, values("p99").rest),
  ];
}
