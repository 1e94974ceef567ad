import {
  createOutbound,
  type Outbound,
  type OutboundFetch,
  type OutboundOptions,
} from "../../src/connectors/outbound/fetch.ts";

/** The id of a Gatehouse instance, as its requests carry it. */
export const INSTANCE = "0123456789abcdef";

export interface TestOutbound extends Outbound {
  readonly fetch: OutboundFetch;
}

/**
 * Requests of a Gatehouse that does not listen anywhere. Each call of `fetch` belongs to a different workspace, so
 * only the limits of the whole node apply to all of them.
 */
export function testOutbound(options: Partial<OutboundOptions> = {}): TestOutbound {
  const outbound = createOutbound({ allow: [], instance: INSTANCE, own: { is: () => false }, ...options });
  let workspaceId = 1_000_000;
  return Object.assign(outbound, {
    fetch: ((text, init) => outbound.fetchFor(workspaceId++)(text, init)) satisfies OutboundFetch,
  });
}
