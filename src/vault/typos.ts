const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** Shorter words are one edit away from too many others, longer ones are no words. */
const SHORTEST = 4;
const LONGEST = 24;
const CORRECTABLE = /^[a-z]+$/;

/**
 * Every spelling that one slip of the fingers away from a word: a letter left out, two swapped, one for another, one too
 * many (Damerau 1964; generated as by Norvig 2007). Some 54 for each letter; none for a word that is no plain word.
 */
export function* spellingsNear(word: string): Generator<string> {
  if (word.length < SHORTEST || word.length > LONGEST || !CORRECTABLE.test(word)) return;
  for (let at = 0; at < word.length; at++) yield word.slice(0, at) + word.slice(at + 1);
  for (let at = 0; at + 1 < word.length; at++) {
    yield word.slice(0, at) + word[at + 1] + word[at] + word.slice(at + 2);
  }
  for (let at = 0; at <= word.length; at++) {
    const before = word.slice(0, at);
    const from = word.slice(at);
    for (const letter of LETTERS) {
      if (at < word.length) yield before + letter + from.slice(1);
      yield before + letter + from;
    }
  }
}
