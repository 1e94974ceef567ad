import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { Icon, Mark } from "../parts/icons.tsx";
import { useFeedState, useSession } from "../state/session.tsx";
import { useUsage } from "../state/usage.ts";
import { Account } from "./account.tsx";
import { MENU } from "./pages.ts";
import { Routes } from "./routes.tsx";
import { StopButton, StoppedBanner } from "./stop.tsx";

/** The frame around every page: menu, pending approvals, stop button. */
export function Shell(): JSX.Element {
  const { session } = useSession();
  const { path } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const menuButton = useRef<HTMLButtonElement>(null);

  /** The focused menu item disappears, so the menu button takes the focus. A newly opened page then takes it. */
  function closeMenu(): void {
    if (!isOpen) return;
    setOpen(false);
    menuButton.current?.focus();
  }

  function pageOpened(): void {
    setOpen(false);
    // The router does not report the first page, so this covers only later ones.
    main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  return (
    <div class="shell">
      <a
        class="skip"
        href={`${path}#content`}
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <header class="bar">
        <button
          ref={menuButton}
          type="button"
          class="menu-button button-icon button-plain"
          aria-label="Menu"
          aria-expanded={isOpen}
          aria-controls="menu"
          onClick={() => (isOpen ? closeMenu() : setOpen(true))}
        >
          <Icon name={isOpen ? "close" : "menu"} />
        </button>
        <a class="brand" href="/console" aria-label="Gatehouse">
          <Mark />
          <span class="only-wide">Gatehouse</span>
        </a>
        <span class="muted cut" title="Workspace">
          {session.workspace}
        </span>
        <div class="bar-end">
          <LiveState />
          <StopButton />
          <Account />
        </div>
      </header>
      <StoppedBanner />
      <Menu path={path} isOpen={isOpen} close={closeMenu} />
      <main id="content" class="main" ref={main} tabIndex={-1}>
        <Routes opened={pageOpened} />
      </main>
    </div>
  );
}

function Menu({
  path,
  isOpen,
  close,
}: {
  readonly path: string;
  readonly isOpen: boolean;
  readonly close: () => void;
}): JSX.Element {
  const { can } = useSession();
  const usage = useUsage();
  const element = useRef<HTMLElement>(null);
  const waiting = usage?.approvals_pending ?? 0;
  useEffect(() => {
    if (isOpen) element.current?.querySelector("a")?.focus();
  }, [isOpen]);
  useEffect(() => {
    if (!isOpen) return undefined;
    const closeByKey = (event: KeyboardEvent) => {
      if (event.key === "Escape") close();
    };
    addEventListener("keydown", closeByKey);
    return () => removeEventListener("keydown", closeByKey);
  }, [isOpen, close]);
  return (
    <nav ref={element} id="menu" class="nav" aria-label="Pages" data-open={isOpen}>
      <ul>
        {MENU.filter(({ scope }) => scope === null || can(scope)).map((entry) => (
          <li key={entry.path}>
            <a
              href={entry.path}
              aria-current={isCurrent(entry.path, path) ? "page" : undefined}
              onClick={close}
            >
              <Icon name={entry.icon} />
              {entry.name}
              {entry.icon === "approvals" && waiting > 0 && (
                <span class="count">
                  {waiting}
                  <span class="unseen"> waiting</span>
                </span>
              )}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function isCurrent(entry: string, path: string): boolean {
  return entry === "/console" ? path === entry : path === entry || path.startsWith(`${entry}/`);
}

const STATES = {
  connecting: "Connecting …",
  live: "Live",
  lost: "No connection. Trying again …",
} as const;

function LiveState(): JSX.Element {
  const state = useFeedState();
  return (
    <span class="row small muted" role="status" title={STATES[state]}>
      <span class="live-dot" data-state={state} />
      <span class={state === "live" ? "only-wide" : undefined}>{STATES[state]}</span>
    </span>
  );
}
