import type { Aim } from "../figures.ts";

/** Documents a second that go in, whatever they are. */
export const LEAST_INGEST: Aim = { of: "gatehouse", relation: ">=", value: 300 };
