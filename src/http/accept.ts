interface Range {
  readonly type: string;
  readonly quality: number;
}

interface Match extends Range {
  /** 3 for a type by its name, 2 for `text/*`, 1 for the range of all. */
  readonly specificity: number;
  readonly place: number;
}

/**
 * Which of the media types that are offered a client wants most (RFC 9110, section 12.5.1): by quality, then the one that
 * it names more closely, then the one that it names first, then the one that is offered first. Parameters beside `q` are not
 * looked at. @returns undefined where it names none of them, or sends no such header
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

/** Nothing of a range that is not one. */
function readRange(text: string): Range[] {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
  return name.includes("/") && QUALITY.test(weight) ? [{ type: name, quality: Number(weight) }] : [];
}

/** The range that speaks of a type: the closest one, whatever its quality, and the first of equals. */
function closest(ranges: readonly Range[], type: string): Match | undefined {
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
