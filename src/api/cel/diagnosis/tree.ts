/** The tree of a text that may be broken: rules with their parts by label. Parts that were not found are absent. */

export interface TreeToken {
  readonly kind: number;
  readonly text: string;
  /** Offset in the source. */
  readonly at: number;
}

export class TreeNode {
  /** Of the alternative; of the rule, which is written small, when none was found. */
  readonly name: string;
  readonly at: number;
  readonly #parts = new Map<string, (TreeNode | TreeToken)[]>();

  constructor(name: string, at: number) {
    this.name = name;
    this.at = at;
  }

  add(label: string, part: TreeNode | TreeToken): void {
    if (label === '') return;
    const parts = this.#parts.get(label);
    if (parts === undefined) this.#parts.set(label, [part]);
    else parts.push(part);
  }

  node(label: string): TreeNode | undefined {
    return this.nodes(label).at(-1);
  }

  nodes(label: string): readonly TreeNode[] {
    return (this.#parts.get(label) ?? []) as TreeNode[];
  }

  token(label: string): TreeToken | undefined {
    return this.tokens(label).at(-1);
  }

  tokens(label: string): readonly TreeToken[] {
    return (this.#parts.get(label) ?? []) as TreeToken[];
  }
}
