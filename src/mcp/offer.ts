import type { Agent, Agents } from "../access/agents.ts";
import type { Caller } from "../access/caller.ts";
import { hasScope } from "../access/scopes.ts";
import { takeTurn } from "../base/inflow.ts";
import { SharedWork } from "../base/shared-work.ts";
import type { Via } from "../base/via.ts";
import type { CatalogueTool } from "../connectors/catalogue.ts";
import { EVERY_TOOL, type ToolRegistry, type ToolUser } from "../connectors/registry.ts";
import { AGENTS, agentTool, agentToolName, type OfferedAgent } from "./agent-tool.ts";
import { FINDING_TOOLS } from "./find-tools.ts";
import type { Fixtures } from "./fixtures.ts";
import { type ToolNames, toolNames } from "./names.ts";
import { lengthOfView, type ToolView, toolJson, viewTool } from "./tool-view.ts";

/** The tools available to one caller. */
export interface ToolOffer {
  /** Sorted by name. In search mode, the two tools that find and call the others. */
  readonly listed: readonly ToolView[];
  /** All tools that the caller may call. */
  readonly reachable: readonly ToolView[];
  /** Names for all tools of the workspace, so that a name means the same for every token. */
  readonly names: ToolNames;
  /** By listed name: the Gatehouse instances that a tool's calls pass through after this one, if any. */
  readonly paths: ReadonlyMap<string, Via>;
  /** A hash of `listed`. Sessions keep it instead of the list. Made when first needed, in turns with other work. */
  readonly digest: () => Promise<string>;
}

/** Maximum number of agents offered as tools. */
const AGENT_LIMIT = 1_000;
/** Kinds of callers cached per workspace. Callers with the same agent and scopes share one. */
const OFFERS = 1_000;
/** Maximum number of tools in all their lists together. */
const OFFERED = 500_000;
/** Viewing, naming and sorting a tool takes as long as walking this number of JSON members (see `Arrival`). */
const MEMBERS = 16;

/** Made for this catalogue. Removed when agents change, even while being made. */
interface WorkspaceToolCache {
  readonly catalogue: readonly CatalogueTool[];
  readonly made: Promise<WorkspaceOffers>;
}

interface WorkspaceOffers {
  readonly agents: readonly OfferedAgent[];
  readonly names: ToolNames;
  readonly offers: Map<string, ToolOffer>;
  /** Offers that are being made, by the same key. */
  readonly making: SharedWork<ToolOffer>;
  /** Number of tools in all lists of `offers`. */
  offered: number;
}

/** Tool lists, made on demand and kept until agents or connectors change. */
export class ToolOffers {
  readonly #agents: Agents;
  readonly #registry: ToolRegistry;
  readonly #fixtures: Fixtures | null;
  readonly #workspaces = new Map<number, WorkspaceToolCache>();
  /** The views of tools, shared by all kinds of callers while the tool is offered. */
  readonly #views = new WeakMap<CatalogueTool, ToolView>();

  constructor(parts: {
    readonly agents: Agents;
    readonly registry: ToolRegistry;
    readonly fixtures: Fixtures | null;
  }) {
    this.#agents = parts.agents;
    this.#registry = parts.registry;
    this.#fixtures = parts.fixtures;
    parts.agents.changed.listen((workspaceId) => void this.#workspaces.delete(workspaceId));
  }

  /** The names of all tools of the workspace. A call needs no more than these. */
  async namesOf(workspaceId: number): Promise<ToolNames> {
    return (await this.#known(workspaceId)).names;
  }

  async of(caller: Caller): Promise<ToolOffer> {
    const { workspaceId } = caller;
    const agent = caller.agent ? await this.#agents.byId(workspaceId, caller.agent.id) : null;
    const known = await this.#known(workspaceId);
    // The agent was removed after authentication, so it can reach nothing.
    if (agent === undefined) {
      return makeOffer(workspaceId, { reachable: [], listed: [], names: known.names, paths: new Map() });
    }
    const key = JSON.stringify([agent?.id, agent?.version, caller.scopes, caller.toolsMode]);
    const kept = known.offers.get(key);
    return kept ?? known.making.run(key, () => this.#add(key, caller, agent, known));
  }

  async #add(key: string, caller: Caller, agent: Agent | null, known: WorkspaceOffers): Promise<ToolOffer> {
    const offer = await this.#make(caller, agent, known);
    known.offered += offer.reachable.length;
    if (known.offers.size >= OFFERS || known.offered > OFFERED) {
      known.offers.clear();
      known.offered = offer.reachable.length;
    }
    known.offers.set(key, offer);
    return offer;
  }

  #known(workspaceId: number): Promise<WorkspaceOffers> {
    const catalogue = this.#registry.catalogue.list(workspaceId);
    const known = this.#workspaces.get(workspaceId);
    if (known?.catalogue === catalogue) return known.made;
    const making = { catalogue, made: this.#prepare(workspaceId, catalogue) };
    this.#workspaces.set(workspaceId, making);
    making.made.catch(() => {
      // Callers that wait for it get the error; the next caller tries again.
      if (this.#workspaces.get(workspaceId) === making) this.#workspaces.delete(workspaceId);
    });
    return making.made;
  }

  async #prepare(workspaceId: number, catalogue: readonly CatalogueTool[]): Promise<WorkspaceOffers> {
    const agents = await this.#offered(workspaceId);
    const names = toolNames([
      ...catalogue.map(({ name }) => name),
      ...agents.map(({ name }) => agentToolName(name)),
    ]);
    return { agents, names, offers: new Map(), making: new SharedWork(), offered: 0 };
  }

  async #offered(workspaceId: number): Promise<OfferedAgent[]> {
    const offered: OfferedAgent[] = [];
    for (let isDone = false; !isDone; ) {
      const { agents, more } = await this.#agents.list(
        workspaceId,
        AGENT_LIMIT - offered.length,
        offered.at(-1)?.name,
      );
      // Without their instructions, which may be megabytes and would be kept here.
      offered.push(...agents.map(({ id, name, description }) => ({ id, name, description })));
      isDone = !more || offered.length >= AGENT_LIMIT;
    }
    return offered;
  }

  async #make(caller: Caller, agent: Agent | null, { agents, names }: WorkspaceOffers): Promise<ToolOffer> {
    const { workspaceId, scopes } = caller;
    const user: ToolUser = { tools: agent?.tools ?? EVERY_TOOL, scopes };
    const paths = new Map<string, Via>();
    const allowed = await this.#registry.reachable(workspaceId, user);
    const turn = takeTurn(workspaceId, { bytes: 0, members: allowed.length * MEMBERS });
    if (turn) await turn;
    const tools = allowed.map((tool) => {
      const name = names.outward(tool.name) ?? tool.name;
      if (tool.offered.path) paths.set(name, tool.offered.path);
      return this.#view(name, tool);
    });
    const dispatched = hasScope(scopes, "tasks:write")
      ? agents.filter(({ id }) => agent === null || id === agent.id)
      : [];
    const agentTools = dispatched.map((each) =>
      agentTool(names.outward(agentToolName(each.name)) ?? `${AGENTS}__${each.name}`, each),
    );
    const reachable = [...tools, ...agentTools, ...(this.#fixtures?.tools ?? [])].sort((a, b) =>
      a.name < b.name ? -1 : 1,
    );
    const listed = caller.toolsMode === "search" ? FINDING_TOOLS : reachable;
    return makeOffer(workspaceId, { reachable, listed, names, paths });
  }

  #view(name: string, tool: CatalogueTool): ToolView {
    const known = this.#views.get(tool);
    if (known?.name === name) return known;
    const view = viewTool(name, tool);
    this.#views.set(tool, view);
    return view;
  }
}

function makeOffer(workspaceId: number, offer: Omit<ToolOffer, "digest">): ToolOffer {
  let digest: Promise<string> | undefined;
  return {
    ...offer,
    digest() {
      digest ??= digestOf(workspaceId, offer.listed);
      return digest;
    },
  };
}

const digests = new WeakMap<ToolView, string>();

async function digestOf(workspaceId: number, tools: readonly ToolView[]): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  for (const tool of tools) {
    let known = digests.get(tool);
    if (known === undefined) {
      // Writing and hashing a tool takes as long as measuring it twice.
      const turn = takeTurn(workspaceId, { bytes: 2 * lengthOfView(tool) });
      if (turn) await turn;
      known = new Bun.CryptoHasher("sha256").update(toolJson(tool)).digest("hex");
      digests.set(tool, known);
    }
    hash.update(known);
  }
  return hash.digest("hex");
}
