import type { VaultScope } from "../../../../http/api.ts";

/** A path with what lies in it and below it. */
export interface ScopeNode {
  readonly path: string;
  /** Its last segment. */
  readonly name: string;
  /** Documents in it and below it. */
  readonly documents: number;
  readonly children: readonly ScopeNode[];
}

interface Growing {
  readonly path: string;
  readonly name: string;
  documents: number;
  readonly children: Map<string, Growing>;
}

/** All scopes below one root, whose path is empty. Paths between that hold no document themselves are nodes as well. */
export function treeOf(scopes: readonly VaultScope[]): ScopeNode {
  const root: Growing = { path: "", name: "", documents: 0, children: new Map() };
  for (const { scope, documents } of scopes) {
    let node = root;
    node.documents += documents;
    if (scope === "/") continue;
    for (const name of scope.split("/")) {
      const path = node.path === "" ? name : `${node.path}/${name}`;
      const child: Growing = node.children.get(name) ?? { path, name, documents: 0, children: new Map() };
      node.children.set(name, child);
      child.documents += documents;
      node = child;
    }
  }
  return grown(root);
}

function grown({ path, name, documents, children }: Growing): ScopeNode {
  return {
    path,
    name,
    documents,
    children: [...children.values()].map(grown).sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

/** The tree with those nodes alone whose path holds a text, and what leads to them. */
export function matching(node: ScopeNode, text: string): ScopeNode | null {
  if (node.path !== "" && node.path.includes(text)) return node;
  const children = node.children.flatMap((child) => matching(child, text) ?? []);
  return children.length > 0 || node.path === "" ? { ...node, children } : null;
}
