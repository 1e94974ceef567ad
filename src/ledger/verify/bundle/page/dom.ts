/** What the page uses of a browser's DOM: the rest of the program has none, and so none of its types. */
export interface PageElement {
  textContent: string | null;
  hidden: boolean;
  className: string;
  value: string;
  disabled: boolean;
  readonly files: { readonly [index: number]: Blob & { readonly name: string } } | null;
  append(...nodes: (PageElement | string)[]): void;
  replaceChildren(...nodes: (PageElement | string)[]): void;
  addEventListener(type: string, listener: (event: PageEvent) => void): void;
}

export interface PageEvent {
  readonly dataTransfer?: { readonly files: PageElement["files"] };
  preventDefault(): void;
}

declare const document: {
  getElementById(id: string): PageElement | null;
  createElement(name: string): PageElement;
};

/** @throws Error where the page has no such element */
export function element(id: string): PageElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no ${id}`);
  return found;
}

/** Text alone goes in: nothing of what was checked is ever markup. */
export function make(name: string, className: string, ...content: (PageElement | string)[]): PageElement {
  const made = document.createElement(name);
  made.className = className;
  made.append(...content);
  return made;
}
