/** One person is one person, however their name is spelled. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { personKey } from "../../src/base/person-key.ts";
import { hasApproved } from "../../src/console/pages/approvals/has-approved.ts";

const SPELLINGS = [
  ["letter case", "ANN LEE"],
  ["white space", "  Ann\t\n Lee "],
  ["full width", "Ａnn Lee"],
  ["a zero-width space", "Ann\u200b Lee\u200b"],
  ["a zero-width space between two spaces", "Ann \u200b Lee"],
  ["a byte order mark", "\ufeffAn\ufeffn Lee"],
  ["a soft hyphen", "An\u00adn Lee"],
  ["a directional mark", "\u202eAnn Lee\u202c"],
  ["control characters", "\0Ann Lee\u0085\x7f"],
  ["a variation selector", "Ann Lee\ufe0f"],
  ["a tag", "Ann Lee\u{e0041}"],
  ["a filler", "Ann\u3164 Lee"],
  ["a grapheme joiner", "A\u034fnn Lee"],
  ["a blank Braille pattern for the space", "Ann\u2800Lee"],
  ["a blank Braille pattern at the end", "Ann Lee\u2800"],
  ["a musical note without a head", "Ann\u{1d159} Lee"],
  ["a Khitan filler", "An\u{16fe4}n Lee"],
  ["a placeholder for an object", "Ann Lee\ufffc"],
] as const;

test.each(SPELLINGS)("a name is the same with other %s", (_, spelling) => {
  expect(personKey(spelling)).toBe(personKey("Ann Lee"));
});

test.each([
  ["Ann Lee", "AnnLee"],
  ["José", "Jose"],
  ["An Lee", "Ann Lee"],
])("%s and %s are two people", (one, other) => {
  expect(personKey(one)).not.toBe(personKey(other));
});

test("a key is its own key, and the console compares names like the server", () => {
  const unit = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.constantFrom("\u200d", "\u0301", "J", "\u030c", "İ", " ", "\0"),
  );
  const name = fc.array(unit, { maxLength: 12 }).map((units) => units.join(""));
  fc.assert(
    fc.property(name, name, (one, other) => {
      expect(personKey(personKey(one))).toBe(personKey(one));
      const approval = { approved_by: [{ person: one, decided_at: "" }] };
      expect(hasApproved(approval, other)).toBe(personKey(one) === personKey(other));
      expect(hasApproved(approval, personKey(one))).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});
