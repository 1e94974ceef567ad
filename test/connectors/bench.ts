/** Connectors and calls on a separate store, without a gateway around them. Tests provide the sources. */
import type { Database } from "bun:sqlite";
import { dirname } from "node:path";
import { createIds, type Ids, systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { Catalogue } from "../../src/connectors/catalogue.ts";
import { Connectors } from "../../src/connectors/connectors.ts";
import type { ConnectorDefinition } from "../../src/connectors/definition/definition.ts";
import type { ToolAnswer, ToolSource } from "../../src/connectors/source.ts";
import type { ConnectorOrigin } from "../../src/connectors/tools/definition.ts";
import { type KeptTool, keepTool } from "../../src/connectors/tools/kept-tool.ts";
import { Call } from "../../src/gate/call.ts";
import { LedgerHistories } from "../../src/gate/ledger-histories.ts";
import { LateRecords } from "../../src/gate/unwritten-decisions.ts";
import type { EntryDraft } from "../../src/ledger/entry.ts";
import { Forgetting } from "../../src/store/forgetting.ts";
import { seal, open as unseal } from "../../src/store/sealed-value.ts";
import { openSecretKey } from "../../src/store/secret-key.ts";
import { type LedgerBench, openLedger } from "../ledger/support.ts";

/** A connector for a test's tools. */
export function origin(name: string): ConnectorOrigin {
  return { id: 1, name, kind: "mcp", authorisedBy: "tests", authorisedAt: 0 };
}

export type LedgerEntry = EntryDraft & { readonly seq: number };

export interface CallBench extends LedgerBench {
  readonly ids: Ids;
  /** A separate connection to the store's file. */
  readonly file: Database;
  /** A call by a token of workspace 1, which acts as this agent or as none. */
  call(action: string, agent?: { readonly id: number; readonly name: string }): Call;
  entries(): LedgerEntry[];
  /** What the next start would read from the ledger. */
  histories(): Promise<LedgerHistories>;
  /** The text that an entry's call was made with or was answered with. */
  payload(seq: number, kind: "input" | "output"): string | undefined;
}

export async function openCallBench(): Promise<CallBench> {
  const bench = await openLedger();
  const { db, ledger, clock } = bench;
  const file = bench.own;
  const late = new LateRecords(db, clock, silentLog);
  let calls = 0;
  return {
    ...bench,
    file,
    ids: createIds(clock, systemRandom),
    call(action, agent) {
      const caller = {
        workspaceId: 1,
        workspace: "w1",
        actor: "token:tok_1",
        agent: agent ?? null,
        scopes: ["admin"],
        toolsMode: "all",
        name: "tests",
        person: null,
        role: null,
      } as const;
      return new Call({ caller, requestId: `req_${++calls}`, channel: "mcp", action }, db, ledger, late);
    },
    async histories() {
      const histories = new LedgerHistories({
        db,
        ledger,
        heads: bench.heads,
        log: silentLog,
        acceptChanged: false,
      });
      await histories.read([{ id: 1, name: "w1" }]);
      return histories;
    },
    entries: () => bench.rows().map(({ bytes }) => JSON.parse(bytes) as LedgerEntry),
    payload(seq, kind) {
      const find = "SELECT body FROM payloads WHERE workspace_id = 1 AND seq = ? AND kind = ?";
      return file.query<{ body: string }, [number, string]>(find).get(seq, kind)?.body;
    },
  };
}

export const tool = (name: string): KeptTool =>
  keepTool({ name, description: "", inputSchema: { type: "object" }, destructive: false });

export const said = (text: string): ToolAnswer => ({ content: [{ type: "text", text }] });

/** The parts of a source that a test defines; the rest completes at once. */
export type SourceScript = Partial<ToolSource>;

/** A source after it was opened. */
export interface OpenedSource {
  readonly name: string;
  /** Reports changed tools, as an upstream does. */
  toolsChanged(): void;
}

export interface ConnectorBench extends CallBench {
  readonly catalogue: Catalogue;
  readonly connectors: Connectors;
  /** Sources in the order in which they were opened. */
  readonly opened: readonly OpenedSource[];
  /** Sets the behaviour of sources opened from now on. */
  script(script: SourceScript): void;
  /** Adds a connector that is reached over HTTP. */
  create(name: string): Promise<unknown>;
  /** The connectors in the store. */
  stored(): { readonly name: string; readonly status: string; readonly error: string | null }[];
}

const MCP = { kind: "mcp", transport: { type: "http", url: "http://127.0.0.1:1/mcp" } } as const;

export async function openConnectorBench(): Promise<ConnectorBench> {
  const bench = await openCallBench();
  const { db, ledger, clock, path } = bench;
  const key = openSecretKey({ masterKey: undefined, dataDir: dirname(path) });
  const catalogue = new Catalogue([]);
  const opened: OpenedSource[] = [];
  let scripted: SourceScript = {};
  const connectors = new Connectors({
    forgetting: new Forgetting({ files: db, clock, log: silentLog }),
    db,
    ledger,
    catalogue,
    clock,
    log: silentLog,
    definitions: {
      seal: (_workspaceId, name, definition) => seal(key, JSON.stringify(definition), name),
      open: (_workspaceId, name, sealed) =>
        JSON.parse(Buffer.from(unseal(key, sealed, name)).toString()) as ConnectorDefinition,
    },
    isShared: false,
    announce() {},
    admit: (definition) => definition,
    check: async () => {},
    openSource(name, _definition, { toolsChanged }) {
      opened.push({ name, toolsChanged });
      return {
        list: async () => [tool("echo")],
        call: async () => said("hi"),
        close: async () => {},
        ...scripted,
      };
    },
  });
  return {
    ...bench,
    catalogue,
    connectors,
    opened,
    script(script) {
      scripted = script;
    },
    create: (name) => connectors.create(bench.call("connector.authorise"), { name, ...MCP }),
    stored: () =>
      bench.file
        .query<{ name: string; status: string; error: string | null }, []>(
          "SELECT name, status, error FROM connectors ORDER BY name",
        )
        .all(),
  };
}
