import type { World } from "../world.ts";
import type { KillableNode, NodeCluster } from "./cluster.ts";

/** The agent that is stopped and resumed to see how soon all servers know. Nothing else uses it. */
const PROBED = "probed";
const APART_MS = 4_000;
const POLL_MS = 10;
/** How long calls are made after a time at which every server must refuse them. */
const FURTHER_MS = 4_000;
const ANSWER_MS = 5_000;

export interface Probes {
  /** Milliseconds from the answer to a stop until the last server refused the agent's calls. */
  readonly stops: number[];
}

export interface Probing {
  readonly cluster: NodeCluster;
  readonly world: World;
  readonly probes: Probes;
  /** The time after a stop from which every server must refuse calls. */
  readonly mustHoldMs: number;
}

/** Stops an agent on one server, and calls a tool on every server, again and again. */
export async function probeStops(
  { cluster, world, probes, mustHoldMs }: Probing,
  isOver: () => boolean,
): Promise<void> {
  const admin = (node: KillableNode, path: string, body?: object) => send(node, cluster.admin, path, body);
  const first = cluster.nodes[0];
  if (!first) return;
  await admin(first, "/v1/agents", { name: PROBED, owner: "soak", memory_scope: "/" });
  const issued = await admin(first, "/v1/tokens", { name: PROBED, agent: PROBED });
  const { secret } = (await issued.json()) as { secret: string };
  while (!isOver()) {
    await Bun.sleep(APART_MS);
    const node = cluster.next();
    if (node === null || cluster.isDisturbed) continue;
    const stopped = await admin(node, `/v1/agents/${PROBED}/stop`).catch(() => null);
    if (stopped?.status !== 200) continue;
    const from = performance.now();
    const felt = await Promise.all(
      cluster.nodes.filter((each) => each.isServing).map((each) => feltAfter(each, secret, from, mustHoldMs)),
    );
    if (!cluster.isDisturbed) {
      const known = felt.filter((ms) => ms !== null);
      const last = Math.max(0, ...known);
      probes.stops.push(last);
      if (last > mustHoldMs)
        world.faults.add("stops", `a stop was felt on the last server after ${Math.round(last)} ms`);
    }
    while (!isOver()) {
      const next = cluster.next();
      const resumed = next && (await admin(next, `/v1/agents/${PROBED}/resume`).catch(() => null));
      if (resumed?.status === 200) break;
      await Bun.sleep(200);
    }
  }
}

/** When the last call began that was not refused; null if the server was disturbed. */
async function feltAfter(
  node: KillableNode,
  secret: string,
  from: number,
  mustHoldMs: number,
): Promise<number | null> {
  let last = 0;
  while (performance.now() - from < mustHoldMs + FURTHER_MS) {
    const began = performance.now();
    const answer = await send(node, secret, "/v1/tools/time.now/call", { arguments: {} }).catch(() => null);
    if (answer === null || node.isDisturbed) return null;
    if (answer.status === 200) last = began - from;
    else if (began - from > mustHoldMs) return last;
    await Bun.sleep(POLL_MS);
  }
  return last;
}

function send(node: KillableNode, secret: string, path: string, body: object = {}): Promise<Response> {
  return fetch(node.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_MS),
  });
}
