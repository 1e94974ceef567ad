import { createOutbound, type Outbound, type OutboundOptions } from "../../src/connectors/outbound/fetch.ts";

/** The id of a Gatehouse, as its requests carry it. */
export const INSTANCE = "0123456789abcdef";

/** Requests of a Gatehouse that listens nowhere. */
export function testOutbound(options: Partial<OutboundOptions> = {}): Outbound {
  return createOutbound({ allow: [], instance: INSTANCE, own: { is: () => false }, ...options });
}
