import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A page. Its heading is also the document's title, unless a title is given. */
export function Page({
  title,
  heading = title,
  lead,
  actions,
  children,
}: {
  readonly title: string;
  readonly heading?: string;
  readonly lead?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element {
  useEffect(() => {
    document.title = `${title} · Gatehouse`;
  }, [title]);
  return (
    <div class="page">
      <header class="page-head">
        <div class="stack-small">
          <h1>{heading}</h1>
          {lead && <p>{lead}</p>}
        </div>
        {actions && <div class="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function Card({
  title,
  actions,
  children,
}: {
  readonly title?: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <section class="card">
      {(title !== undefined || actions) && (
        <div class="card-head">
          {title !== undefined && <h2>{title}</h2>}
          {actions && <div class="row">{actions}</div>}
        </div>
      )}
      {children}
    </section>
  );
}

/** An empty state: what belongs here, and the next step. */
export function Empty({
  title,
  children,
  action,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly action?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{children}</p>
      {action}
    </div>
  );
}

/** Terms and their descriptions: `[["Agent", "helper"], …]`. Null descriptions are left out. */
export function Facts({
  of,
}: {
  readonly of: readonly (readonly [string, ComponentChildren] | null)[];
}): JSX.Element {
  return (
    <dl class="facts">
      {of.map(
        (fact) =>
          fact && [<dt key={`${fact[0]}-term`}>{fact[0]}</dt>, <dd key={`${fact[0]}-text`}>{fact[1]}</dd>],
      )}
    </dl>
  );
}

export function Tabs({
  label,
  of,
  current,
}: {
  readonly label: string;
  /** Pairs of address and name. */
  readonly of: readonly (readonly [string, string])[];
  readonly current: string;
}): JSX.Element {
  const frame = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a narrow screen the current tab may be scrolled out of view.
    const nav = frame.current;
    const link = nav?.querySelector<HTMLElement>(`[aria-current="page"]`);
    if (!nav || !link) return;
    const over = link.getBoundingClientRect().right - nav.getBoundingClientRect().right;
    if (over > 0) nav.scrollLeft += over;
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={frame}>
      {of.map(([href, name]) => (
        <a key={href} href={href} aria-current={href === current ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}
