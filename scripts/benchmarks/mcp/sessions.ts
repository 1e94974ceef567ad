import { compared, type Figure } from "../figures.ts";
import { holdResult } from "../load/jobs.ts";
import { residentBytes } from "../processes/usage.ts";
import { settings } from "../setup.ts";
import { combine } from "../statistics.ts";
import type { Target, Workshop } from "../workshop.ts";
import { endSessions, openSessions, streamsOf } from "./client.ts";

const SESSIONS = 1_000;
/** Opened before the first measurement, so that one-time costs of first sessions do not count. */
const FIRST_SESSIONS = 50;
/** Time for memory to be released, if it is released at all. */
const SETTLE_MS = 3_000;
const BYTES_PER_MB = 1_000_000;
const OPEN = { of: "gatehouse", relation: "<", value: 60 } as const;

interface Sizes {
  /** With a stream open in each session. */
  readonly open: number | null;
  /** The connections are gone, and the sessions are waiting for them to return. */
  readonly dropped: number | null;
  readonly ended: number | null;
}

/** A thousand idle MCP sessions, each with an open stream. */
export async function sessions(workshop: Workshop): Promise<Figure[]> {
  const server = await workshop.gatehouse({ yaml: settings() });
  const gatehouse = await sizes(workshop, server, server.admin);
  const bareServer = await workshop.bareMcp({ tools: [] });
  const baseline = await sizes(workshop, bareServer, server.admin);
  await Promise.all([server.stop(), bareServer.stop()]);

  const figure = (what: keyof Sizes, label: string, aim?: typeof OPEN) =>
    compared(
      { id: `mcp.sessions.${what}`, label, unit: "MB" },
      [{ baseline: baseline[what], gatehouse: gatehouse[what] }],
      aim,
    );
  return [
    figure("open", "1,000 MCP sessions with a stream, resident above idle", OPEN),
    figure("dropped", "  after all connections were closed"),
    figure("ended", "  after all were ended"),
  ];
}

/** Megabytes above the server's earlier memory. */
async function sizes({ generator }: Workshop, { pid, port }: Target, token: string): Promise<Sizes> {
  const server = { port, token };
  await endSessions(server, await openSessions(server, FIRST_SESSIONS));
  await Bun.sleep(SETTLE_MS);
  const idle = residentBytes(pid);
  const above = (bytes: number | null) =>
    combine({ baseline: idle, gatehouse: bytes }, (before, now) => (now - before) / BYTES_PER_MB);

  const opened = await openSessions(server, SESSIONS);
  const request = streamsOf(server, opened);
  await generator.ask({ kind: "hold", port, request, count: SESSIONS }, holdResult);
  await Bun.sleep(SETTLE_MS);
  const open = above(residentBytes(pid));
  await generator.ask({ kind: "let-go" }, holdResult);
  await Bun.sleep(SETTLE_MS);
  const dropped = above(residentBytes(pid));
  await endSessions(server, opened);
  await Bun.sleep(SETTLE_MS);
  return { open, dropped, ended: above(residentBytes(pid)) };
}
