import type { Clock } from "../../base/clock.ts";
import type { RandomSource } from "../../base/ids.ts";
import type { Inflow } from "../../base/inflow.ts";
import type { Log } from "../../base/log.ts";
import type { Mask } from "../../base/masking/mask.ts";
import type { OutboundFetch } from "../outbound/fetch.ts";
import type { ProgramUsers } from "./stdio/program-users.ts";

/** Dependencies of an upstream MCP server's source. */
export interface McpSourceParts {
  readonly workspaceId: number;
  /** Checks addresses and follows redirects only within the origin. Every HTTP request goes through it. */
  readonly fetch: OutboundFetch;
  /** Masks the definition's secrets. All output of an upstream goes through it before anyone sees it. */
  readonly mask: Mask;
  /** This Gatehouse's id. Each request carries it, so a request that returns here is recognised. */
  readonly instance: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  /** How long a call may go on without a sign of life. */
  readonly timeoutMs: number;
  /** The handshake's time limit. Default: over HTTP 10 s, or `timeoutMs` if that is less; 60 s for a program. */
  readonly handshakeMs?: number;
  /** PATH and HOME for programs found by name. Default: the process's own. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** The users that programs run as. Null for the server's own user. */
  readonly programUsers: ProgramUsers | null;
  /** Called when the upstream reports changed tools, so they should be listed again. */
  readonly toolsChanged: () => void;
}

/** The same, plus what belongs to one connector, for the files in this folder. */
export interface UpstreamParts extends McpSourceParts {
  readonly name: string;
  readonly handshakeMs: number;
  /** Paces everything that the upstream sends. */
  readonly inflow: Inflow;
}
