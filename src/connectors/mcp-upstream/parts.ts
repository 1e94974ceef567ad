import type { Clock } from "../../base/clock.ts";
import type { RandomSource } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { OutboundFetch } from "../outbound/fetch.ts";
import type { Mask } from "../secrets/mask.ts";
import type { ProgramUsers } from "./stdio/program-users.ts";

/** What an upstream MCP server's source is given. */
export interface McpParts {
  /** Guards addresses and refuses redirects; every HTTP request goes through it. */
  readonly fetch: OutboundFetch;
  /** Of the definition's secrets: whatever an upstream says goes through it before anybody sees it. */
  readonly mask: Mask;
  /** This Gatehouse's id, which each request carries, so that one that comes back is known. */
  readonly instance: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  /** How long a call may go on without a sign of life. */
  readonly timeoutMs: number;
  /** How long a handshake may take. Default: 10 s over HTTP, `timeoutMs` where that is less; 60 s for a program. */
  readonly handshakeMs?: number;
  /** Where programs are found by name: PATH and HOME are taken from it. Default: the process's own. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Who programs run as. Null: the server's own user. */
  readonly programUsers: ProgramUsers | null;
  /** The upstream has said that its tools are others now: they should be asked for anew. */
  readonly toolsChanged: () => void;
}

/** What its insides need: the same, and whose they are. */
export interface UpstreamParts extends McpParts {
  readonly name: string;
  readonly handshakeMs: number;
}
