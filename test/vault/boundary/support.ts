import fc from "fast-check";
import { startFakeEmbeddings } from "../../support/fake-embeddings.ts";
import { type Answered, startGateway, type TestGateway } from "../../support/gateway.ts";
import { AGENT_SCOPES, type Answer, must, search, write } from "../../support/vault.ts";

/** Sources of vectors, each with its own way through the index. */
export const EMBEDDINGS = ["builtin/lexical", "a model"] as const;

export interface House {
  readonly gateway: TestGateway;
  stop(): Promise<void>;
}

/** A gateway with its own vectors or with those of a scripted model. */
export async function startHouse(embeddings: (typeof EMBEDDINGS)[number]): Promise<House> {
  if (embeddings === "builtin/lexical") {
    const gateway = await startGateway();
    return { gateway, stop: () => gateway.stop() };
  }
  const upstream = startFakeEmbeddings();
  const provider = `up: { kind: openai-compatible, base_url: "${upstream.baseUrl}" }`;
  const yaml = `providers:\n  ${provider}\nembeddings: { model: up/words }\n`;
  const gateway = await startGateway({ yaml });
  return {
    gateway,
    async stop() {
      await gateway.stop();
      await upstream.stop();
    },
  };
}

/** A workspace, by default through its admin token. */
export interface Workspace {
  readonly admin: string;
  /** Writes a document and returns its id. */
  write(document: object, token?: string): Promise<string>;
  search(body: object, token?: string): Promise<Answer>;
  call(method: string, path: string, body?: object, token?: string): Promise<Answered>;
  /** Creates an agent with this memory, and returns a token that acts as it. */
  agent(name: string, memory: string | readonly string[]): Promise<string>;
}

export function workspaceOf(gateway: TestGateway, admin: string): Workspace {
  return {
    admin,
    call: (method, path, body, token = admin) =>
      gateway.call(method, path, { token, ...(body === undefined ? {} : { body }) }),
    write: async (document, token = admin) => (await write(gateway, document, token)).id,
    search: (body, token = admin) => search(gateway, body, token),
    async agent(name, memory) {
      const agent = { name, owner: "tests", memory_scope: memory };
      await must(gateway, [201], "POST", "/v1/agents", agent, admin);
      const token = { name, agent: name, scopes: AGENT_SCOPES };
      return (await must(gateway, [201], "POST", "/v1/tokens", token, admin)).secret;
    },
  };
}

/** The oracle, which shares no code with the product: it compares paths segment by segment. */
export function isBelow(path: string, scope: string): boolean {
  const own = segmentsOf(path);
  return segmentsOf(scope).every((segment, index) => own[index] === segment);
}

export function isInsideOf(boundary: readonly string[], path: string): boolean {
  return boundary.some((scope) => isBelow(path, scope));
}

function segmentsOf(path: string): readonly string[] {
  return path === "/" ? [] : path.split("/");
}

/** Paths that are easy to confuse. */
export const scopePath = fc.oneof(
  { weight: 1, arbitrary: fc.constant("/") },
  {
    weight: 3,
    arbitrary: fc.constantFrom("support", "supportx", "support-a", "support.a", "support/a", "s"),
  },
  {
    weight: 8,
    arbitrary: fc
      .array(
        fc.constantFrom("support", "supportx", "support-a", "support.a", "suppor", "a", "b", "0", "a0"),
        {
          minLength: 1,
          maxLength: 4,
        },
      )
      .map((segments) => segments.join("/")),
  },
);

/** The memory of an agent, or the scopes of a search: one path or several. */
export const scopePaths = fc.uniqueArray(scopePath, { minLength: 1, maxLength: 3 });
