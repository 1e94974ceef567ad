import { Elysia } from "elysia";
import Type from "typebox";
import type { Agents } from "../../access/agents.ts";
import type { Caller } from "../../access/caller.ts";
import type { Workspaces } from "../../access/workspaces.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import type { LedgerKeys } from "../../ledger/keys/keys.ts";
import { type RotationParts, rotateKey } from "../../ledger/keys/rotation.ts";
import { formatTlogProof } from "../../ledger/proof/tlog-proof.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import type { Proofs } from "../../ledger/reading/proofs.ts";
import { ledgerSize } from "../../ledger/reading/query.ts";
import type { Db } from "../../store/db.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { isSeq } from "../ledger/entry.ts";
import { ownEntries, seesEntry } from "../ledger/own-entries.ts";
import { requireOperator } from "./workspace.ts";

export interface LedgerProofParts {
  readonly db: Db;
  readonly proofs: Proofs;
  readonly lists: Pick<LedgerLists, "entry">;
  readonly keys: LedgerKeys;
  readonly workspaces: Workspaces;
  readonly agents: Pick<Agents, "byId">;
}

const ConsistencyQuery = Type.Object(
  {
    from: Type.Integer({ minimum: 0, description: "The size of the older tree, in entries." }),
    to: Type.Optional(
      Type.Integer({ minimum: 0, description: "The size of the newer tree. Default: the current size." }),
    ),
  },
  { additionalProperties: false },
);
const tag = "Ledger";

/**
 * Proofs about the ledger for anyone who has its key and keeps checkpoints. A token acting as an agent gets heads,
 * keys and consistency proofs, which contain only hashes and sizes, and inclusion proofs for its own agent's entries.
 */
export function ledgerProofRoutes(
  endpoints: EndpointContext,
  { db, proofs, lists, keys, workspaces, agents }: LedgerProofParts,
) {
  const checkpoint = endpoint(
    endpoints,
    {
      action: "ledger.checkpoint",
      scope: "ledger:read",
      summary: "Read the head of the ledger's tree, newly signed: a C2SP checkpoint as plain text",
      tag,
      status: 200,
    },
    async ({ call }) => ({ status: 200, text: (await proofs.head(call.caller.workspaceId)).note }),
  );

  const key = endpoint(
    endpoints,
    {
      action: "ledger.read",
      scope: "ledger:read",
      operationId: "ledger_key",
      summary: "Read the key that verifies checkpoints (C2SP verifier key), and earlier keys",
      tag,
      status: 200,
    },
    async ({ call }) => {
      const { name } = workspaces.get(call.caller.workspaceId);
      call.about({ detail: { what: "key" } });
      const { current, former } = keys.verifierKeys(name);
      return { status: 200, body: { vkey: current, ...(former.length > 0 && { former_vkeys: former }) } };
    },
  );

  const inclusion = endpoint(
    endpoints,
    {
      action: "ledger.read",
      scope: "ledger:read",
      operationId: "ledger_proof",
      summary: "Prove that an entry is in the ledger's tree; with `Accept: text/plain` as a C2SP tlog-proof",
      tag,
      headers: { Accept: "`text/plain` selects a C2SP tlog-proof instead of JSON." },
      status: 200,
    },
    async ({ call, params: { seq = "" }, request }) => {
      const found = (await isVisible(call.caller, seq))
        ? await proofs.inclusion(call.caller.workspaceId, Number(seq))
        : undefined;
      if (!found) throw new Problem("not_found", `There is no entry ${JSON.stringify(seq)}.`);
      call.about({ detail: { what: "proof", target_seq: Number(seq) } });
      const { leaf, inclusion: hashes, head } = found;
      if (wantsText(request)) {
        const text = formatTlogProof({ index: Number(seq) - 1, inclusion: hashes, checkpoint: head.note });
        return { status: 200, text, headers: { vary: "accept" } };
      }
      const body = {
        seq: Number(seq),
        leaf: Buffer.from(leaf).toString("hex"),
        size: head.size,
        inclusion: hashes.map(toBase64),
        checkpoint: head.note,
      };
      return { status: 200, body, headers: { vary: "accept" } };
    },
  );

  const consistency = endpoint(
    endpoints,
    {
      action: "ledger.read",
      scope: "ledger:read",
      operationId: "ledger_consistency",
      summary: "Prove that the tree of `to` entries extends the tree of `from` entries",
      tag,
      query: ConsistencyQuery,
      status: 200,
    },
    async ({ call, query: { from, to } }) => {
      const { workspaceId } = call.caller;
      call.about({ detail: { what: "consistency" } });
      const found = await proofs.consistency(workspaceId, from, to);
      if (!found) {
        const size = await ledgerSize(db, workspaceId);
        if (to !== undefined && to > size) throw invalidField("/to", `must be at most ${size}`);
        throw invalidField("/from", `must be at most ${to ?? size}`);
      }
      const body = {
        from,
        to: found.head.size,
        consistency: found.consistency.map(toBase64),
        checkpoint: found.head.note,
      };
      return { status: 200, body };
    },
  );

  async function isVisible(caller: Caller, seq: string): Promise<boolean> {
    const own = await ownEntries(agents, caller);
    if (!isSeq(seq) || !own) return isSeq(seq);
    const entry = await lists.entry(caller.workspaceId, Number(seq));
    return entry !== undefined && seesEntry(own, entry);
  }

  return new Elysia({ prefix: "/v1/ledger" })
    .get("/checkpoint", checkpoint.handle, checkpoint.hook)
    .get("/key", key.handle, key.hook)
    .get("/consistency", consistency.handle, consistency.hook)
    .get("/:seq/proof", inclusion.handle, inclusion.hook);
}

/**
 * Only for the node's operator on the machine itself, because all workspaces share the key. Not in the API document.
 */
export function ledgerKeyRoutes(endpoints: EndpointContext, parts: RotationParts) {
  const rotate = endpoint(
    endpoints,
    {
      action: "ledger.rotate_key",
      scope: "settings:write",
      summary: "Change the signing key",
      tag,
      status: 200,
    },
    async ({ call }) => {
      const { actor, workspace } = call.caller;
      requireOperator(actor);
      await rotateKey(parts, { actor, channel: call.channel, requestId: call.requestId });
      const { current, former } = parts.keys.verifierKeys(workspace);
      return { status: 200, body: { vkey: current, former_vkeys: former } };
    },
  );
  return new Elysia({ prefix: "/operator/ledger" }).post("/rotate-key", rotate.handle, {
    ...rotate.hook,
    detail: { hide: true },
  });
}

/** JSON unless the client names plain text and no other type that this route offers. */
function wantsText(request: Request): boolean {
  const accept = request.headers.get("accept") ?? "";
  return /text\/plain/i.test(accept) && !/application\/json/i.test(accept);
}

function toBase64(hash: Uint8Array): string {
  return Buffer.from(hash).toString("base64");
}
