import type { JsonObject } from "../agents/index.ts";
import type { FieldError } from "../base/errors.ts";
import { grantCost, matchesAny } from "../base/glob.ts";
import { Signal } from "../base/signal.ts";
import { ArgumentChecks } from "./arguments/checks.ts";
import type { BuiltinTool, ToolActor } from "./builtin/tool.ts";
import type { SourceCall, ToolAnswer } from "./source.ts";
import { ToolRule } from "./tool-rule.ts";
import type { ConnectorOrigin } from "./tools/definition.ts";
import { type KeptTool, keepTool } from "./tools/kept-tool.ts";

/** A connector's scopes, which are globs over its tools' own names. */
const AUTHORISED = new ToolRule({ test: matchesAny, cost: grantCost });

/** A tool of a workspace, ready to call. */
export interface CatalogueTool {
  readonly connector: string;
  readonly origin: ConnectorOrigin | BuiltinOrigin;
  /** `<connector>.<tool>` */
  readonly name: string;
  readonly offered: KeptTool;
  /** Whether the tool is within the scopes that its connector was authorised with. */
  readonly isAuthorised: boolean;
  /**
   * Whether the tool changes data in Gatehouse. An aborted call of such a tool is awaited, so that the recorded
   * outcome is what it did.
   */
  readonly isWaitedFor: boolean;
  /** The errors in the arguments; empty if they are valid. */
  validate(input: JsonObject): readonly FieldError[];
  /** `input` is valid. @throws ToolError (or its subclass ConnectorError) with a message for the caller */
  call(actor: ToolActor, input: JsonObject, context: SourceCall): Promise<ToolAnswer>;
}

/** Built-in connectors are part of the program. */
export interface BuiltinOrigin extends Omit<ConnectorOrigin, "kind"> {
  readonly kind: "builtin";
}

/** Makes the calls of one connector's tools. */
export type CallTool = (tool: KeptTool, input: JsonObject, context: SourceCall) => Promise<ToolAnswer>;

/** Every tool of every workspace, in memory. Calls and listings read only this, never the store. */
export class Catalogue {
  readonly #builtin: readonly CatalogueTool[];
  readonly #builtinByName: ReadonlyMap<string, CatalogueTool>;
  readonly #builtinByConnector = new Map<string, readonly CatalogueTool[]>();
  readonly #workspaces = new Map<number, Map<string, readonly CatalogueTool[]>>();
  readonly #byName = new Map<number, ReadonlyMap<string, CatalogueTool>>();
  readonly #lists = new Map<number, readonly CatalogueTool[]>();
  /** The authorised tools of a connector, by all of its tools. */
  readonly #authorised = new WeakMap<readonly CatalogueTool[], readonly CatalogueTool[]>();
  readonly #checks = new ArgumentChecks();
  /** Names of the built-in connectors, in order. */
  readonly builtinConnectors: readonly string[];
  /** Emits the id of a workspace whose tools have changed. */
  readonly changed = new Signal<number>();

  constructor(builtin: readonly BuiltinTool[]) {
    this.#builtin = builtin.map((tool) => ({
      connector: tool.connector,
      origin: { id: 0, name: tool.connector, kind: "builtin", authorisedBy: "system", authorisedAt: 0 },
      name: `${tool.connector}.${tool.offered.name}`,
      offered: keepTool(tool.offered),
      isAuthorised: true,
      isWaitedFor: tool.offered.annotations?.readOnlyHint !== true,
      validate: (input) => tool.validate(input),
      call: (actor, input, context) => tool.call(actor, input, context),
    }));
    this.builtinConnectors = [...new Set(builtin.map(({ connector }) => connector))].sort();
    this.#builtinByName = new Map(this.#builtin.map((tool) => [tool.name, tool]));
    for (const connector of this.builtinConnectors) {
      this.#builtinByConnector.set(
        connector,
        this.#builtin.filter((tool) => tool.connector === connector),
      );
    }
  }

  /** Includes tools that are not authorised. */
  find(workspaceId: number, name: string): CatalogueTool | undefined {
    return this.#builtinByName.get(name) ?? this.#names(workspaceId).get(name);
  }

  /** All authorised tools, by name. The same list until a connector changes. */
  list(workspaceId: number): readonly CatalogueTool[] {
    const known = this.#lists.get(workspaceId);
    if (known) return known;
    const own = [...(this.#workspaces.get(workspaceId)?.values() ?? [])].flat();
    const list = [...this.#builtin, ...own]
      .filter(({ isAuthorised }) => isAuthorised)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    this.#lists.set(workspaceId, list);
    return list;
  }

  /** The authorised tools of one connector. The same list until the connector changes. */
  toolsOf(workspaceId: number, connector: string): readonly CatalogueTool[] {
    const tools =
      this.#workspaces.get(workspaceId)?.get(connector) ?? this.#builtinByConnector.get(connector) ?? [];
    const known = this.#authorised.get(tools);
    if (known) return known;
    const authorised = tools.filter(({ isAuthorised }) => isAuthorised);
    this.#authorised.set(tools, authorised);
    return authorised;
  }

  /**
   * Decides which tools a connector is authorised for, in turns with other work. `put` then need not decide it at
   * once.
   */
  async authorise(
    workspaceId: number,
    scopes: readonly string[],
    offered: readonly KeptTool[],
  ): Promise<void> {
    await AUTHORISED.of(workspaceId, offered, scopes);
  }

  /** Replaces the tools of a connector. `scopes` are globs over its own tools' names. */
  put(
    workspaceId: number,
    origin: ConnectorOrigin,
    scopes: readonly string[],
    offered: readonly KeptTool[],
    call: CallTool,
  ): void {
    const { name: connector } = origin;
    const authorised = AUTHORISED.known(offered, scopes);
    const tools = offered.map((tool, index) => {
      const isAuthorised = authorised ? authorised.has(index) : matchesAny(scopes, tool.name);
      return catalogued(origin, isAuthorised, tool, call, this.#checks);
    });
    const connectors = this.#workspaces.get(workspaceId) ?? new Map<string, readonly CatalogueTool[]>();
    connectors.set(connector, tools);
    this.#workspaces.set(workspaceId, connectors);
    this.#hasChanged(workspaceId);
  }

  drop(workspaceId: number, connector: string): void {
    if (this.#workspaces.get(workspaceId)?.delete(connector)) this.#hasChanged(workspaceId);
  }

  #names(workspaceId: number): ReadonlyMap<string, CatalogueTool> {
    const known = this.#byName.get(workspaceId);
    if (known) return known;
    const connectors = this.#workspaces.get(workspaceId);
    if (!connectors) return new Map();
    const names = new Map([...connectors.values()].flat().map((tool) => [tool.name, tool]));
    this.#byName.set(workspaceId, names);
    return names;
  }

  #hasChanged(workspaceId: number): void {
    this.#byName.delete(workspaceId);
    this.#lists.delete(workspaceId);
    this.changed.emit(workspaceId);
  }
}

function catalogued(
  origin: ConnectorOrigin,
  isAuthorised: boolean,
  offered: KeptTool,
  call: CallTool,
  checks: ArgumentChecks,
): CatalogueTool {
  return {
    connector: origin.name,
    origin,
    name: `${origin.name}.${offered.name}`,
    offered,
    isAuthorised,
    isWaitedFor: false,
    validate: (input) => checks.errors(offered, input),
    call: ({ via }, input, context) => call(offered, input, via ? { ...context, via } : context),
  };
}
