import type { Bus } from "../nodes/bus.ts";

/**
 * What is remembered of rights is trusted only while the changes of other nodes arrive. A change is sent when it is
 * committed, and MUST hold a second later.
 */
const TRUSTED_FOR_MS = 750;
/** A node that has received nothing for this time refuses new calls. It MUST do so within five seconds. */
const REFUSED_AFTER_MS = 4_000;

type Hearing = Pick<Bus, "deafForMs">;

/** Whether what was read before is still trusted. */
export function isTrusted({ deafForMs }: Hearing): boolean {
  return deafForMs <= TRUSTED_FOR_MS;
}

/** Whether this node refuses new calls because it may have missed changes. */
export function isCutOff({ deafForMs }: Hearing): boolean {
  return deafForMs > REFUSED_AFTER_MS;
}
