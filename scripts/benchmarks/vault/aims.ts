import type { Aim } from "../figures.ts";

/** Documents to be added per second, whatever their kind. */
export const LEAST_INGEST: Aim = { of: "gatehouse", relation: ">=", value: 300 };
