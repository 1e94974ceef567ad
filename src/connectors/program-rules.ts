import type { Caller } from "../access/caller.ts";
import { isCommandLine, isOperator } from "../access/operator.ts";
import { hasScope } from "../access/scopes.ts";
import { DEFAULT_WORKSPACE, type Workspaces } from "../access/workspaces.ts";
import { invalidField, Problem } from "../base/errors.ts";
import type { StdioRule } from "../config/config.ts";
import type { Sql } from "../store/db.ts";
import type { StoredConnector } from "./connector.ts";
import type { ConnectorDefinition, StdioTransport } from "./definition/definition.ts";

/** Decides who may start programs on this machine through stdio connectors, according to `connectors.stdio`. */
export class ProgramRules {
  readonly #rule: StdioRule;
  readonly #sql: Sql;
  readonly #workspaces: Workspaces;

  constructor(rule: StdioRule, sql: Sql, workspaces: Workspaces) {
    this.#rule = rule;
    this.#sql = sql;
    this.#workspaces = workspaces;
  }

  /** Whether the caller may add connectors that start programs, and so may read the output of these programs. */
  mayAdd(caller: Caller): boolean {
    if (this.#rule === "none") return false;
    if (isOperator(caller)) return true;
    return this.#rule === "all" && caller.agent === null && hasScope(caller.scopes, "connectors:write");
  }

  /**
   * The definition to store. If it starts a program, it records who added it.
   * @throws Problem 403 `operator_only`; 422 if no connector may start a program
   */
  admit(definition: ConnectorDefinition, caller: Caller): ConnectorDefinition {
    const transport = programOf(definition);
    if (!transport) return definition;
    const byOperator = isOperator(caller);
    if (this.#rule === "none" && byOperator) {
      throw invalidField("/transport/type", "stdio is disabled on this server (connectors.stdio is none)");
    }
    if (!this.mayAdd(caller)) throw operatorOnly(caller);
    return { kind: "mcp", transport: { ...transport, addedBy: byOperator ? "operator" : "workspace" } };
  }

  /** Checks a stored definition before its program may be started. @throws Problem whose detail says what to do */
  async check(definition: ConnectorDefinition, stored: StoredConnector): Promise<void> {
    const transport = programOf(definition);
    if (!transport || this.#rule === "all") return;
    if (this.#rule === "none") {
      throw new Problem("operator_only", "It starts a program, but connectors.stdio is none.");
    }
    if (await this.#isOperators(transport, stored)) return;
    const { name: workspace } = this.#workspaces.get(stored.workspaceId);
    throw new Problem(
      "operator_only",
      `It starts a program that the operator has not authorised. Remove the connector and ask the operator to add it again with: gatehouse connector add --workspace ${workspace}. Or set connectors.stdio to all.`,
    );
  }

  /** Old definitions do not record who added them. Their rows do, and a token's row outlives its revocation. */
  async #isOperators({ addedBy }: StdioTransport, stored: StoredConnector): Promise<boolean> {
    if (addedBy !== undefined) return addedBy === "operator";
    const { authorisedBy, workspaceId } = stored;
    if (isCommandLine(authorisedBy)) return true;
    if (workspaceId !== this.#workspaces.find(DEFAULT_WORKSPACE)?.id) return false;
    const token = await this.#sql.get<{ readonly scopes: string; readonly agent_id: number | null }>(
      "SELECT scopes, agent_id FROM tokens WHERE workspace_id = $1 AND 'token:' || id = $2",
      [workspaceId, authorisedBy],
    );
    return token?.agent_id === null && hasScope(JSON.parse(token.scopes) as string[], "admin");
  }
}

/** The transport of a connector that starts a program. */
export function programOf(definition: ConnectorDefinition): StdioTransport | undefined {
  return definition.kind === "mcp" && definition.transport.type === "stdio"
    ? definition.transport
    : undefined;
}

function operatorOnly({ agent }: Caller): Problem {
  return new Problem(
    "operator_only",
    agent
      ? `This token acts as ${agent.name}, and no agent may start programs on this machine.`
      : "Connectors over stdio start programs on the server's machine. Ask its operator to add this one.",
  );
}
