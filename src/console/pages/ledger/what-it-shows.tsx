import type { JSX } from "preact";
import { Card } from "../../parts/page.tsx";

/** Explains what a check in a web page can and cannot show. */
export function WhatItShows(): JSX.Element {
  return (
    <Card title="What this shows, and what it cannot">
      <p>
        Your browser gets the entries as they were hashed, hashes each of them again, builds the tree, and
        checks the signatures. An entry that was changed, moved, added or taken away shows, and so does a
        ledger that no longer begins with what this browser, or a checkpoint that you paste, says it was.
      </p>
      <p>
        The page comes from the same server as the ledger. A server that lies could send a page that lies as
        well: for a judgement that does not depend on it, use one of these.
      </p>
      <ul class="ledger-list">
        <li>
          <code>gatehouse ledger verify --bundle FILE</code>, with a program that you got elsewhere, checks an
          Article 14 bundle with no server and no network.
        </li>
        <li>
          <code>verify.html</code>, which lies in each bundle, does the same in a browser, from a file.
        </li>
      </ul>
      <p>
        No check of entries alone can show that whoever holds the signing key has made the whole ledger anew.
        Only a checkpoint that was kept elsewhere can: in this browser, in <code>checkpoint_file</code>, or by
        your webhook.
      </p>
    </Card>
  );
}
