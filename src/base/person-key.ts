/**
 * Characters that take no space: format and control characters, variation selectors, fillers, placeholders. White space is
 * kept.
 */
const INVISIBLE = /(?!\s)\p{Cc}|\p{Cf}|\p{Default_Ignorable_Code_Point}|[\u{16fe4}\ufffc]/gu;
/** Characters that are shown as a space although they are not. */
const BLANK = /[\u2800\u{1d159}]/gu;

/**
 * Maps different spellings of a person's name to one key: letter case, white space, compatibility forms (UAX #15) and
 * invisible characters do not make two people. The console's `keyOfPerson` does the same.
 */
export function personKey(person: string): string {
  const visible = person.normalize("NFKC").replace(BLANK, " ").replace(INVISIBLE, "");
  return visible.trim().replace(/\s+/gu, " ").toLowerCase().normalize("NFKC");
}
