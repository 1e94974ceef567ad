import { type ReadEvent, readEvents } from "../support/events.ts";
import type { TestGateway } from "../support/gateway.ts";

type Asked = Pick<TestGateway, "url" | "admin">;

/** A client of `/v1/events` that keeps everything it receives. */
export interface FeedClient {
  readonly events: readonly ReadEvent[];
  /** Resolves with the first event that passes, including earlier ones. Rejects if the stream ends first. */
  saw(name: string, passes?: (data: ReadEvent["data"]) => boolean): Promise<ReadEvent>;
  /** The data of the events of one name. */
  named(name: string): ReadEvent["data"][];
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  leave(): void;
}

/** Opens the feed, and resolves when the server has reported that it is open. */
export async function openFeed(gateway: Asked, token = gateway.admin): Promise<FeedClient> {
  const control = new AbortController();
  const response = await fetch(`${gateway.url}/v1/events`, {
    headers: { authorization: `Bearer ${token}` },
    signal: control.signal,
  });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  const events: ReadEvent[] = [];
  let hasEnded = false;
  let wake = Promise.withResolvers<void>();
  const told = () => {
    wake.resolve();
    wake = Promise.withResolvers();
  };
  async function read(): Promise<void> {
    try {
      for await (const event of readEvents(response)) {
        events.push(event);
        told();
      }
    } catch (error) {
      if (!control.signal.aborted) throw error;
    } finally {
      hasEnded = true;
      told();
    }
  }
  const ended = read();
  // A client that does not wait for the end need not handle its failure.
  ended.catch(() => {});
  const client: FeedClient = {
    events,
    ended,
    async saw(name, passes = () => true) {
      for (let at = 0; ; ) {
        for (; at < events.length; at++) {
          const event = events[at];
          if (event?.event === name && passes(event.data)) return event;
        }
        if (hasEnded) throw new Error(`the feed has ended before ${name}: ${JSON.stringify(events)}`);
        await wake.promise;
      }
    },
    named: (name) => events.filter(({ event }) => event === name).map(({ data }) => data),
    leave: () => control.abort(),
  };
  await client.saw("feed.open");
  return client;
}

/**
 * Resolves when these clients of one workspace have received everything that has happened so far and that they may
 * see. It sets the workspace's limits twice. Every token receives both changes, the second in a later round.
 */
export async function settled(
  gateway: Pick<TestGateway, "call" | "admin">,
  clients: readonly FeedClient[],
  token = gateway.admin,
): Promise<void> {
  for (let round = 0; round < 2; round++) {
    const before = clients.map((client) => client.named("workspace.changed").length);
    const answer = await gateway.call("PATCH", "/v1/workspace", { token, body: { limits: {} } });
    if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
    for (const [index, client] of clients.entries()) {
      let known = before[index] ?? 0;
      await client.saw("workspace.changed", () => known-- === 0);
    }
  }
}
