import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso";
import type { Approval } from "../../../http/api.ts";
import { Page, Tabs } from "../../parts/page.tsx";
import { notify } from "../../parts/toast.tsx";
import { askToLeave } from "../../state/leaving.ts";
import { useSession } from "../../state/session.tsx";
import { type ApprovalName, addressOf, keyOf, nameOf, viewOf, WAITING } from "./address.ts";
import { ChosenPane } from "./chosen-pane.tsx";
import type { DecisionAnswer } from "./decide.tsx";
import { hasApproved } from "./has-approved.ts";
import { KeysDialog } from "./keys-dialog.tsx";
import { ListPane } from "./list-pane.tsx";
import { ApprovalNews } from "./news.ts";
import { answerText, arrivalText } from "./texts.ts";
import { useChosen } from "./use-chosen.ts";
import { useDecided } from "./use-decided.ts";
import { useKeys, useKeysSetting } from "./use-keys.ts";
import { useWaiting } from "./use-waiting.ts";

/** The list of approvals, and the chosen one. */
export function ApprovalsPane(): JSX.Element {
  const { feed, session } = useSession();
  const { query, route } = useLocation();
  const { params } = useRoute();
  const news = useMemo(() => new ApprovalNews(feed), [feed]);
  useEffect(() => news.start(), [news]);
  const view = viewOf(query);
  const name = nameIn(params);
  const chosenKey = name && keyOf({ task: name.task, call_id: name.call });
  const waiting = useWaiting(news);
  const decidedPages = useDecided(news, view);
  const isWaiting = view.tab === "waiting";
  const items = isWaiting ? (waiting.items ?? []) : decidedPages.items;
  const chosen = useChosen(
    news,
    name,
    [...(waiting.items ?? []), ...decidedPages.items],
    (waiting.items !== undefined || waiting.problem !== null) && (isWaiting || !decidedPages.isLoading),
  );
  const [areKeysShown, showKeys] = useState(false);
  const [areKeysOn, setKeysOn] = useKeysSetting();

  /**
   * An approval reached by moving through the list keeps the focus in the list; otherwise its title takes the focus.
   */
  const movedTo = useRef<string | null>(null);
  const shownKey = useRef(chosenKey);
  useEffect(() => {
    if (shownKey.current === chosenKey) return;
    shownKey.current = chosenKey;
    // Do not take the focus from a reader who has already begun to decide.
    if (document.activeElement?.closest(".decide form")) return;
    const isMoved = movedTo.current === chosenKey;
    const place = isMoved ? '.approvals-list [aria-current="true"]' : ".decision-title";
    document.querySelector<HTMLElement>(place)?.focus({ preventScroll: true });
  }, [chosenKey]);

  function open(approval: Approval): void {
    // One step back returns to the list, however many approvals were opened.
    route(addressOf(view, nameOf(approval)), name !== null);
  }

  function move(by: 1 | -1): boolean {
    const index = items.findIndex((one) => keyOf(one) === chosenKey);
    const target = items[index < 0 ? 0 : index + by];
    if (!target) return false;
    askToLeave(() => {
      movedTo.current = keyOf(target);
      open(target);
    });
    return true;
  }

  useKeys(
    {
      j: () => move(1),
      k: () => move(-1),
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      "?": () => {
        showKeys(true);
        return true;
      },
    },
    areKeysOn,
  );

  const person = session.person ?? session.token?.name ?? "";
  const waitingItems = waiting.items ?? [];
  /** The next approval that waits for the reader, in list order, wrapping around at the end. */
  function after(key: string | null): Approval | undefined {
    const index = waitingItems.findIndex((one) => keyOf(one) === key);
    return [...waitingItems.slice(index + 1), ...waitingItems.slice(0, Math.max(index, 0))].find(
      (one) => keyOf(one) !== key && !hasApproved(one, person),
    );
  }
  const next = after(chosenKey);

  function decided(answer: DecisionAnswer, approval: Approval): void {
    notify(answerText(answer, approval));
    movedTo.current = null;
    const following = after(keyOf(approval));
    route(following ? addressOf(WAITING, nameOf(following)) : addressOf(WAITING), true);
  }

  const count = waitingItems.length;
  return (
    <Page
      title={count === 0 ? "Approvals" : `(${count}) Approvals`}
      heading="Approvals"
      actions={
        <button type="button" class="button-small" aria-haspopup="dialog" onClick={() => showKeys(true)}>
          Keys
        </button>
      }
    >
      <div class="approvals" data-chosen={name !== null}>
        <div class="approvals-tabs">
          <Tabs
            label="Approvals"
            of={[
              [addressOf(WAITING), count === 0 ? "Waiting" : `Waiting (${count})`],
              [addressOf({ ...WAITING, tab: "decided" }), "Decided"],
            ]}
            current={addressOf({ ...WAITING, tab: view.tab })}
          />
        </div>
        <ListPane view={view} waiting={waiting} decided={decidedPages} chosenKey={chosenKey} />
        <ChosenPane
          view={view}
          name={name}
          chosen={chosen}
          first={items[0]}
          areKeysOn={areKeysOn}
          decided={decided}
          next={next ? () => route(addressOf(WAITING, nameOf(next)), true) : null}
        />
      </div>
      <p class="unseen" role="status">
        {arrivalText(waiting.arrived)}
      </p>
      {areKeysShown && <KeysDialog isOn={areKeysOn} setOn={setKeysOn} close={() => showKeys(false)} />}
    </Page>
  );
}

function nameIn({ task, call }: Readonly<Record<string, string>>): ApprovalName | null {
  return task === undefined || call === undefined ? null : { task, call };
}
