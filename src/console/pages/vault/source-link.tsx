import type { JSX } from "preact";

/** A document's source: a link if it is a web address, otherwise plain text, because anybody may have written it. */
export function SourceLink({ uri }: { readonly uri: string }): JSX.Element {
  if (!isWeb(uri)) return <span class="break">{uri}</span>;
  return (
    <a class="break" href={uri} rel="noreferrer noopener" target="_blank">
      {uri}
      <span class="unseen"> (opens in a new tab)</span>
    </a>
  );
}

function isWeb(uri: string): boolean {
  try {
    const { protocol } = new URL(uri);
    return protocol === "https:" || protocol === "http:";
  } catch {
    return false;
  }
}
