import {
  createOutbound,
  type Outbound,
  type OutboundFetch,
  type OutboundOptions,
} from "../../src/connectors/outbound/fetch.ts";

/** The id of a Gatehouse, as its requests carry it. */
export const INSTANCE = "0123456789abcdef";

export interface TestOutbound extends Outbound {
  readonly fetch: OutboundFetch;
}

/**
 * Requests of a Gatehouse that listens nowhere. Each call of `fetch` is another workspace's, so only the limits of the whole node
 * hold for them together.
 */
export function testOutbound(options: Partial<OutboundOptions> = {}): TestOutbound {
  const outbound = createOutbound({ allow: [], instance: INSTANCE, own: { is: () => false }, ...options });
  let workspaceId = 1_000_000;
  return Object.assign(outbound, {
    fetch: ((text, init) => outbound.fetchFor(workspaceId++)(text, init)) satisfies OutboundFetch,
  });
}
