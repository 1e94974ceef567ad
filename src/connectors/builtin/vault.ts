import Type from "typebox";
import type { Agents } from "../../access/agents.ts";
import { tokenIdOf } from "../../access/caller.ts";
import { type Boundary, EVERYTHING, narrow, simplify } from "../../access/memory-scope.ts";
import type { Tokens } from "../../access/tokens.ts";
import { ToolError } from "../../agents/index.ts";
import type { Clock } from "../../base/clock.ts";
import type { Db, Sql } from "../../store/db.ts";
import { DOCUMENT_FIELDS, DocumentId, ScopePath, SEARCH_FIELDS } from "../../vault/fields.ts";
import type { Vault } from "../../vault/vault.ts";
import { viewDocument, viewPassage } from "../../vault/view.ts";
import { type BuiltinTool, builtinTool, type ToolActor } from "./tool.ts";

/** Default number of search results: enough for a model to answer from, without filling its context. */
const TOP_K = 8;
const SEARCH_CHARACTERS = 16_000;
const READ_CHARACTERS = 20_000;
const TEXT_LENGTH = 1_000_000;

export interface VaultToolParts {
  readonly vault: Vault;
  readonly agents: Agents;
  readonly tokens: Pick<Tokens, "grantOf">;
  readonly db: Db;
  readonly clock: Pick<Clock, "now">;
}

/** The vault as tools. Each call is limited to the agent's memory scope at the time of the call. */
export function vaultTools(parts: VaultToolParts): readonly BuiltinTool[] {
  return [searchTool(parts), readTool(parts), writeTool(parts)];
}

function searchTool(parts: VaultToolParts): BuiltinTool {
  return builtinTool({
    name: "vault.search",
    title: "Search the vault",
    description:
      "Searches the documents that you may see. Returns the passages that match best, each with its text, title, " +
      "document_id and position in the document (start, end).",
    input: Type.Object(SEARCH_FIELDS, { additionalProperties: false }),
    annotations: { readOnlyHint: true, openWorldHint: false },
    async execute(actor, { query, top_k, scopes, filter, mode, max_chars }, signal) {
      const held = await memoryOf(parts, actor);
      const question = {
        workspaceId: actor.workspaceId,
        boundary: scopes === undefined ? simplify(held) : narrow(held, scopes),
        query,
        topK: top_k ?? TOP_K,
        mode: mode ?? "hybrid",
        filter: filter ?? {},
        maxCharacters: max_chars ?? SEARCH_CHARACTERS,
        recency: null,
        explain: false,
      };
      const answer = await parts.vault.search(question, signal);
      return { results: answer.passages.map(viewPassage), mode: answer.mode };
    },
  });
}

function readTool(parts: VaultToolParts): BuiltinTool {
  return builtinTool({
    name: "vault.read",
    title: "Read a document",
    description:
      "Reads a document that you may see, or the part of its text from start to end (offsets as returned by " +
      `vault.search). Returns at most ${READ_CHARACTERS} characters; if there are more, continue at next_start.`,
    input: Type.Object(
      {
        document_id: DocumentId,
        start: Type.Optional(Type.Integer({ minimum: 0 })),
        end: Type.Optional(Type.Integer({ minimum: 0 })),
      },
      { additionalProperties: false },
    ),
    annotations: { readOnlyHint: true, openWorldHint: false },
    async execute(actor, { document_id, start = 0, end = Number.POSITIVE_INFINITY }) {
      const boundary = await boundaryOf(parts, actor);
      const document = await parts.vault.find(actor.workspaceId, boundary, document_id);
      const from = Math.min(start, document.characters);
      const to = Math.max(from, Math.min(end, from + READ_CHARACTERS, document.characters));
      const read = await parts.vault.text(document, from, to);
      // The limit never splits a surrogate pair: its first half is returned with the rest.
      const isParted = to < document.characters && to < end && /[\ud800-\udbff]$/.test(read);
      const text = (isParted ? read.slice(0, -1) : read).toWellFormed();
      const upTo = isParted ? to - 1 : to;
      return {
        ...viewDocument(document),
        start: from,
        end: upTo,
        text,
        next_start: upTo < document.characters ? upTo : null,
      };
    },
  });
}

function writeTool(parts: VaultToolParts): BuiltinTool {
  return builtinTool({
    name: "vault.write",
    title: "Write a document",
    description:
      "Writes a document, which you and others who share your memory can then search. If you give the id of an " +
      "existing document, it is replaced.",
    input: Type.Object(
      {
        ...DOCUMENT_FIELDS,
        text: Type.String({ minLength: 1, maxLength: TEXT_LENGTH }),
        scope: Type.Optional(ScopePath),
      },
      { additionalProperties: false },
    ),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    async execute(actor, { title, text, scope, id, content_type, source_uri, metadata }, signal) {
      const boundary = await boundaryOf(parts, actor);
      const first = boundary[0];
      if (first === undefined) throw new ToolError("You have no memory scope to write to.");
      if (signal.aborted) throw notWritten();
      let isWriting = false;
      const write = parts.vault.write(
        {
          workspaceId: actor.workspaceId,
          boundary,
          id,
          title,
          scope: scope ?? first,
          sourceUri: source_uri ?? null,
          metadata: metadata ?? {},
          content: { kind: "text", text, type: content_type ?? "text/plain" },
          createdBy: actor.actor,
          signal,
        },
        // The call is already recorded in the task's own ledger entries.
        (work) =>
          parts.db.tx(
            null,
            async (tx) => {
              // Reading the document may have taken a while.
              if (signal.aborted) throw notWritten();
              if (!(await mayAct(parts, actor, tx)))
                throw new ToolError("The token is no longer valid. Nothing was written.");
              isWriting = true;
              return work(tx, await boundaryOf(parts, actor, tx));
            },
            { turnOf: actor.workspaceId },
          ),
        () => {},
      );
      const { document } = await unlessAborted(write, signal, () => !isWriting);
      return viewDocument(document);
    },
  });
}

/**
 * Waits for a write only while it may still be abandoned. Reading a document takes up to minutes, and neither
 * stopping the agent nor shutting down waits for that. `mayLeave` MUST return false once the signal is no longer
 * checked.
 */
async function unlessAborted<Result>(
  write: Promise<Result>,
  signal: AbortSignal,
  mayLeave: () => boolean,
): Promise<Result> {
  const left = Promise.withResolvers<never>();
  const leave = () => {
    if (mayLeave()) left.reject(notWritten());
  };
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([write, left.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

function notWritten(): ToolError {
  return new ToolError("The call was cancelled. Nothing was written.");
}

/** Whether the caller's token is still valid, as a transaction sees it. */
async function mayAct(
  { tokens }: VaultToolParts,
  { workspaceId, actor }: ToolActor,
  sql: Sql,
): Promise<boolean> {
  const token = tokenIdOf({ actor });
  return token === null || tokens.grantOf(workspaceId, token).isValid(sql);
}

/** `sql` reads within a transaction. */
async function boundaryOf(parts: VaultToolParts, actor: ToolActor, sql?: Sql): Promise<Boundary> {
  return simplify(await memoryOf(parts, actor, sql));
}

async function memoryOf({ agents }: VaultToolParts, actor: ToolActor, sql?: Sql): Promise<Boundary> {
  if (actor.agentId === null) return EVERYTHING;
  const agent = await agents.byId(actor.workspaceId, actor.agentId, sql);
  if (!agent) throw new ToolError("The agent was removed.");
  if (agent.status === "stopped") throw new ToolError("The agent was stopped.");
  return agent.memoryScope;
}
