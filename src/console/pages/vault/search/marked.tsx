import type { JSX } from "preact";
import { mark, type QuestionWords } from "./marks.ts";

/** Text with the query's words highlighted. Rendered as elements, never as markup. */
export function Marked({
  text,
  words,
}: {
  readonly text: string;
  readonly words: QuestionWords;
}): JSX.Element {
  return (
    <>
      {mark(text, words).map((piece, index) =>
        piece.isMarked ? <mark key={index}>{piece.text}</mark> : piece.text,
      )}
    </>
  );
}
