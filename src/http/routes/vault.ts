import { Elysia } from "elysia";
import Type, { type Static } from "typebox";
import type { Agents } from "../../access/agents.ts";
import { MEMORY_SCOPE, MEMORY_SCOPE_LENGTH } from "../../access/memory-scope.ts";
import { hasScope } from "../../access/scopes.ts";
import type { Clock } from "../../base/clock.ts";
import { DURATION_PATTERN, parseDuration } from "../../base/duration.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import { isId } from "../../base/ids.ts";
import type { Call } from "../../gate/call.ts";
import type { QuotedPayloads } from "../../tasks/erasure/quoted-payloads.ts";
import { boundaryOf } from "../../vault/boundary.ts";
import type { VaultDocument } from "../../vault/document.ts";
import { DOCUMENT_BYTES, DOCUMENT_FIELDS, ScopePath, SEARCH_FIELDS, SourceUri } from "../../vault/fields.ts";
import type { SearchAnswer } from "../../vault/messages.ts";
import type { Vault } from "../../vault/vault.ts";
import { viewDocument, viewPassage, viewScope } from "../../vault/view.ts";
import { DEFAULT_LIMIT, decodeCursor, PAGE, page } from "../answer/page.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

const TOP_K = 10;

const AsAgent = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 63,
    description: "Include only what is within this agent's memory scope.",
  }),
);
export const SearchBody = Type.Object(
  {
    ...SEARCH_FIELDS,
    agent: AsAgent,
    explain: Type.Optional(Type.Boolean()),
    recency: Type.Optional(
      Type.Object(
        {
          half_life: Type.String({
            pattern: DURATION_PATTERN,
            description: "The age at which a document's score halves.",
          }),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
const SCOPE = new RegExp(MEMORY_SCOPE);
const ScopesQuery = Type.Object(
  {
    limit: PAGE.limit,
    // A path is longer than the keys of other lists: 1,366 characters in base64.
    cursor: Type.Optional(Type.String({ ...PAGE.cursor, maxLength: 2 * MEMORY_SCOPE_LENGTH })),
    agent: AsAgent,
  },
  { additionalProperties: false },
);
export const DocumentBody = Type.Object(
  {
    ...DOCUMENT_FIELDS,
    text: Type.Optional(Type.String({ minLength: 1 })),
    content_base64: Type.Optional(Type.String({ minLength: 1 })),
    scope: ScopePath,
  },
  { additionalProperties: false },
);

export interface VaultRouteParts {
  readonly vault: Vault;
  readonly agents: Agents;
  readonly clock: Clock;
  readonly quoted: QuotedPayloads;
}

export function vaultRoutes(endpoints: EndpointContext, { vault, agents, clock, quoted }: VaultRouteParts) {
  const tag = "Vault";

  const search = endpoint(
    endpoints,
    {
      action: "vault.search",
      scope: "vault:read",
      summary: "Search passages within a memory boundary",
      tag,
      body: SearchBody,
      status: 200,
    },
    async ({ call, body, request }) => {
      const began = clock.monotonic();
      const boundary = await boundaryOf(agents, call.caller, body);
      if (body.agent !== undefined) call.about({ agent: body.agent });
      const question = {
        workspaceId: call.caller.workspaceId,
        boundary,
        query: body.query,
        topK: body.top_k ?? TOP_K,
        mode: body.mode ?? "hybrid",
        filter: body.filter ?? {},
        maxCharacters: body.max_chars ?? null,
        recency: body.recency ? { halfLifeMs: halfLife(body.recency.half_life), now: clock.now() } : null,
        explain: body.explain ?? false,
      };
      const answer = await vault.search(question, request.signal);
      const took = Math.round((clock.monotonic() - began) * 100) / 100;
      call.about({ detail: { results: answer.passages.length, mode: answer.mode } });
      return { status: 200, body: viewAnswer(answer, took, body.explain ?? false) };
    },
  );

  const write = endpoint(
    endpoints,
    {
      action: "vault.write",
      scope: "vault:write",
      summary: "Write a document, or replace the one with its id",
      tag,
      body: DocumentBody,
      bodyLimit: DOCUMENT_BYTES,
      slow: true,
      status: 201,
    },
    async ({ call, body, request }) => {
      const content = contentOf(body);
      const boundary = await boundaryOf(agents, call.caller, {});
      const { document, isNew } = await vault.write(
        {
          workspaceId: call.caller.workspaceId,
          boundary,
          id: body.id,
          title: body.title,
          scope: body.scope,
          sourceUri: body.source_uri ?? null,
          metadata: body.metadata ?? {},
          content,
          createdBy: call.caller.actor,
          signal: request.signal,
        },
        (work) => call.commit(async (tx) => work(tx, await boundaryOf(agents, call.caller, {}, tx))),
        ({ id, chunks, characters }) => {
          call.about({ detail: { document: id, scope: body.scope, chunks, characters } });
        },
      );
      return {
        status: isNew ? 201 : 200,
        body: viewDocument(document),
        headers: { Location: `/v1/vault/documents/${document.id}` },
      };
    },
  );

  const list = endpoint(
    endpoints,
    {
      action: "vault.list",
      scope: "vault:read",
      summary: "List documents, newest first",
      tag,
      query: Type.Object(
        {
          ...PAGE,
          scope: Type.Optional(ScopePath),
          source_uri: Type.Optional(SourceUri),
        },
        { additionalProperties: false },
      ),
      status: 200,
    },
    async ({ call, query }) => {
      const { limit = DEFAULT_LIMIT, scope } = query;
      const before = decodeCursor(query.cursor, (key) => isId("doc", key));
      const boundary = await boundaryOf(agents, call.caller, scope === undefined ? {} : { scopes: [scope] });
      const found = await vault.list(
        call.caller.workspaceId,
        boundary,
        { sourceUri: query.source_uri },
        limit,
        before,
      );
      return { status: 200, body: page(found, limit, ({ id }) => id, viewDocument) };
    },
  );

  const scopes = endpoint(
    endpoints,
    {
      action: "vault.list",
      scope: "vault:read",
      operationId: "vault_scopes",
      summary: "List the scopes that contain documents, by path, with the number and size of the documents",
      tag,
      query: ScopesQuery,
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor, agent } }) => {
      const after = decodeCursor(cursor, (key) => SCOPE.test(key));
      const boundary = await boundaryOf(agents, call.caller, { agent });
      if (agent !== undefined) call.about({ agent });
      const found = await vault.scopes(call.caller.workspaceId, boundary, limit, after);
      return { status: 200, body: page(found, limit, ({ path }) => path, viewScope) };
    },
  );

  const read = endpoint(
    endpoints,
    { action: "vault.read", scope: "vault:read", summary: "Read a document with its text", tag, status: 200 },
    async ({ call, params: { id = "" } }) => {
      const document = await find(call, id);
      return { status: 200, body: { ...viewDocument(document), text: await vault.text(document) } };
    },
  );

  const remove = endpoint(
    endpoints,
    {
      action: "vault.delete",
      scope: "vault:write",
      summary: "Delete a document with its text, passages and vectors; with ?payloads=true, also its quotes",
      tag,
      query: Type.Object({ payloads: Type.Optional(Type.Boolean()) }, { additionalProperties: false }),
      slow: true,
      status: 204,
    },
    async ({ call, params: { id = "" }, query }) => {
      if (isId("doc", id)) call.about({ detail: { document: id } });
      const { workspaceId, actor, scopes } = call.caller;
      if (query.payloads === true && !hasScope(scopes, "settings:write")) {
        // As when erasing any other payload: tasks of agents unknown to the caller may contain quotes.
        throw new Problem("scope_missing", "?payloads=true also needs the scope settings:write.");
      }
      const boundary = await boundaryOf(agents, call.caller, {});
      let eraseQuotes = async () => {};
      if (query.payloads === true) call.about({ detail: { document: id, payloads: "erase" } });
      await vault.remove(workspaceId, boundary, id, (work) =>
        call.commit(async (tx, record) => {
          const done = await work(tx, await boundaryOf(agents, call.caller, {}, tx));
          if (query.payloads === true) {
            const of = { workspaceId, document: id, actor, requestId: call.requestId };
            eraseQuotes = await quoted.begin(tx, { ...of, deletionSeq: await record() });
          }
          return done;
        }),
      );
      await eraseQuotes();
      return { status: 204 };
    },
  );

  async function find(call: Call, id: string): Promise<VaultDocument> {
    if (isId("doc", id)) call.about({ detail: { document: id } });
    return vault.find(call.caller.workspaceId, await boundaryOf(agents, call.caller, {}), id);
  }

  return new Elysia({ prefix: "/v1/vault" })
    .post("/search", search.handle, search.hook)
    .post("/documents", write.handle, write.hook)
    .get("/documents", list.handle, list.hook)
    .get("/scopes", scopes.handle, scopes.hook)
    .get("/documents/:id", read.handle, read.hook)
    .delete("/documents/:id", remove.handle, remove.hook);
}

function contentOf(body: Static<typeof DocumentBody>) {
  const { text, content_base64: data, content_type: type } = body;
  if (text !== undefined && data !== undefined)
    throw invalidField("/text", "cannot be combined with /content_base64");
  if (text !== undefined) return { kind: "text", text, type: type ?? "text/plain" } as const;
  if (data === undefined) throw invalidField("/text", "is required, unless there is /content_base64");
  if (type === undefined) throw invalidField("/content_type", "is required with /content_base64");
  return { kind: "base64", data, type } as const;
}

function halfLife(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0) throw invalidField("/recency/half_life", "must be a duration such as 30d");
  return ms;
}

/** The response to a search (contract, section 5). */
export function viewAnswer({ passages, mode, corrected }: SearchAnswer, took: number, explain: boolean) {
  return {
    results: passages.map(viewPassage),
    mode,
    took_ms: took,
    ...(explain ? { explain: { corrected } } : {}),
  };
}
