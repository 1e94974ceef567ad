import { Elysia } from "elysia";
import type { Agents } from "../../access/agents.ts";
import { Problem } from "../../base/errors.ts";
import { type PayloadExcerpt, readPayloads } from "../../ledger/payload.ts";
import type { PayloadKind } from "../../ledger/proof/erasure.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { Db } from "../../store/db.ts";
import type { PayloadEraser } from "../../tasks/erasure/payload-eraser.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { isSeq } from "../ledger/entry.ts";
import { ownEntries, seesEntry } from "../ledger/own-entries.ts";

/** The maximum number of characters of text in a response. Requests may be 10 MiB long, and answers even longer. */
const EXCERPT = 262_144;
/** The actions of clients' own calls. A task's texts are read with the task. Texts of tool calls cannot be read. */
const CLIENT_ACTIONS: ReadonlySet<string | undefined> = new Set([
  "model.call",
  "model.count",
  "response.dispatch",
]);

export interface PayloadRouteParts {
  readonly db: Db;
  readonly lists: Pick<LedgerLists, "entry">;
  readonly agents: Pick<Agents, "byId">;
  readonly eraser: PayloadEraser;
}

/** Prompts, outputs and arguments, which are stored apart from the entries that prove them. */
export function payloadRoutes(endpoints: EndpointContext, { db, lists, agents, eraser }: PayloadRouteParts) {
  const erase = endpoint(
    endpoints,
    {
      action: "payload.erase",
      scope: "settings:write",
      summary:
        "Erase the prompt, output and arguments of an entry, of a whole task if the entry dispatched it, or of a request " +
        "of the Responses API with its answers. The proofs stay valid",
      tag: "Ledger",
      slow: true,
      status: 204,
    },
    async ({ call, params: { seq = "" } }) => {
      const { agent } = call.caller;
      // A token acting as an agent could otherwise erase the traces of what that agent did.
      if (agent) {
        throw new Problem("agent_forbidden", `This token acts as ${agent.name} and cannot erase payloads.`);
      }
      if (!isSeq(seq)) throw new Problem("not_found", `There is no entry ${JSON.stringify(seq)}.`);
      await eraser.erase(call, Number(seq));
      return { status: 204 };
    },
  );

  const read = endpoint(
    endpoints,
    {
      action: "payload.read",
      scope: "tasks:read",
      summary:
        "Read the prompt or the answer of a client's model call, up to 262,144 characters of each. The intent has the prompt, " +
        "the outcome the answer; null if it has none, or it was erased",
      tag: "Ledger",
      status: 200,
    },
    async ({ call, params: { seq = "" } }) => {
      const { workspaceId } = call.caller;
      const own = await ownEntries(agents, call.caller);
      const entry = isSeq(seq) ? await lists.entry(workspaceId, Number(seq)) : undefined;
      const { action, task, agent, ...hashes } = entry ? parsedEntry(entry.bytes) : {};
      const isClients = task === undefined && CLIENT_ACTIONS.has(action);
      if (!entry || !isClients || !seesEntry(own, entry)) {
        throw new Problem("not_found", `There is no entry ${JSON.stringify(seq)} of a client's model call.`);
      }
      call.about({ detail: { target_seq: entry.seq }, ...(agent === undefined ? {} : { agent }) });
      const { input_hash: input, output_hash: output } = hashes;
      const texts = await readPayloads(
        db,
        { workspaceId, seq: entry.seq, hashes: { input, output } },
        EXCERPT,
      );
      return { status: 200, body: viewPayloads(entry.seq, texts) };
    },
  );

  return new Elysia({ prefix: "/v1/ledger" })
    .get("/:seq/payload", read.handle, read.hook)
    .delete("/:seq/payload", erase.handle, erase.hook);
}

export function viewPayloads(seq: number, texts: readonly PayloadExcerpt[]) {
  const of = (kind: PayloadKind) => {
    const found = texts.find((text) => text.kind === kind);
    return found === undefined ? null : { text: found.text, characters: found.characters };
  };
  return { seq, input: of("input"), output: of("output") };
}
