interface MediaRange {
  readonly type: string;
  readonly quality: number;
}

interface Match extends MediaRange {
  /** 3 for an exact type, 2 for `text/*`, 1 for the range of all types. */
  readonly specificity: number;
  readonly place: number;
}

/**
 * Chooses the offered media type that a client prefers (RFC 9110, section 12.5.1): the highest quality, then the most
 * specific range, then the first range in the header, then the first type offered. Ignores parameters other than `q`.
 * @returns undefined if there is no header or it accepts none of the types
 */
export function preferredType<Type extends string>(
  accept: string | null,
  offered: readonly Type[],
): Type | undefined {
  if (accept === null) return undefined;
  const ranges = accept.split(",").flatMap(readRange);
  let best: { readonly type: Type; readonly match: Match } | undefined;
  for (const type of offered) {
    const match = closest(ranges, type);
    if (match && match.quality > 0 && (!best || isBetter(match, best.match))) best = { type, match };
  }
  return best?.type;
}

const QUALITY = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** Returns no range if the text is invalid. */
function readRange(text: string): MediaRange[] {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
  return name.includes("/") && QUALITY.test(weight) ? [{ type: name, quality: Number(weight) }] : [];
}

/**
 * The range that applies to a type: the most specific one, whatever its quality; the first if several are equally
 * specific.
 */
function closest(ranges: readonly MediaRange[], type: string): Match | undefined {
  const family = `${type.split("/")[0]}/*`;
  let found: Match | undefined;
  for (const [place, range] of ranges.entries()) {
    const specificity = range.type === type ? 3 : range.type === family ? 2 : range.type === "*/*" ? 1 : 0;
    if (specificity > (found?.specificity ?? 0)) found = { ...range, specificity, place };
  }
  return found;
}

function isBetter(one: Match, other: Match): boolean {
  return (one.quality - other.quality || one.specificity - other.specificity || other.place - one.place) > 0;
}
