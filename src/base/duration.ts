const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** A duration as people write it: an integer followed by s, m, h, d or w. */
export const DURATION_PATTERN = "^(0|[1-9][0-9]{0,8})(s|m|h|d|w)$";
const PATTERN = new RegExp(DURATION_PATTERN);

/** Milliseconds. Undefined if the text is not a duration such as `90d`, `12h` or `10m`. */
export function parseDuration(text: string): number | undefined {
  const match = PATTERN.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * UNITS[match[2] as keyof typeof UNITS];
}
