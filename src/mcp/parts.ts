import type { Agents } from "../access/agents.ts";
import type { Tokens } from "../access/tokens.ts";
import type { Clock } from "../base/clock.ts";
import type { Ids, RandomSource } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { DirectCalls } from "../connectors/direct/call.ts";
import type { ToolRegistry } from "../connectors/registry.ts";
import type { Gate } from "../gate/gate.ts";
import type { LoopGuard } from "../gate/loops.ts";
import type { TaskService } from "../tasks/service.ts";
import type { Vault } from "../vault/vault.ts";
import type { Fixtures } from "./fixtures.ts";
import type { SessionStore } from "./session-store.ts";

/** A place for one open stream. */
export interface McpStreamPlace {
  /** Releases the place. Can be called repeatedly. */
  release(): void;
  /** @param end ends the stream if its place goes to another workspace */
  endsBy(end: () => void): void;
}

/** A place for a long answer that its client has not read yet. */
export interface AnswerPlace {
  /** Releases the place. Can be called repeatedly. */
  release(): void;
  /** @param end ends the answer if its place goes to another one */
  endsBy(end: () => void): void;
}

/** The MCP endpoint's dependencies, assembled in the composition root. */
export interface McpParts {
  readonly gate: Gate;
  readonly loops: LoopGuard;
  /** This Gatehouse's id. */
  readonly instance: string;
  readonly registry: ToolRegistry;
  readonly calls: DirectCalls;
  readonly agents: Agents;
  readonly tokens: Pick<Tokens, "changed">;
  readonly tasks: Pick<TaskService, "dispatch" | "get" | "read" | "cancel">;
  /** Null if there is only one node, which keeps its sessions in memory. */
  readonly sessionStore: SessionStore | null;
  readonly vault: Pick<Vault, "find" | "list" | "text">;
  /** The open streams, including those of REST. `take` throws Problem 429. */
  readonly streams: { take(workspaceId: number): McpStreamPlace };
  /** The memory for long answers, including those of REST. */
  readonly answers: { hold(workspaceId: number, bytes: number): AnswerPlace };
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: RandomSource;
  readonly log: Log;
  /** The configured URL that clients use: `https://gate.example.org`. */
  readonly publicUrl: string | null;
  /** Whether only this machine can reach the server. */
  readonly isLoopback: boolean;
  /** What the conformance suite needs; only in tests. */
  readonly fixtures: Fixtures | null;
}
