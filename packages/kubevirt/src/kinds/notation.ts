/** The notation of the tables (`tables/*.json`), of which README.md tells: what one text says of a field. */

/** A text; a text and what it is a list or map of; or members by name, with the text of the object under `''`. */
export type Described = string | readonly Described[] | { readonly [member: string]: Described };

/** What a text says: `[set]str;maxItems=3 Description.` */
export interface Said {
  /** `str`, `core.Affinity`, `CpuFeature`; empty where the item stands beside the text, and for objects. */
  readonly kind: string;
  /** `[]`, `[set]`, `[map:name]` or `{}`. */
  readonly wrapper?: string;
  readonly description?: string;
  /** The values there are; `enum` where the schema says so too. */
  readonly values?: readonly string[];
  /** The schema lets it be absent, but whoever writes the object always has it. */
  readonly isAlwaysThere: boolean;
  /** The TypeScript type where it is another than the kind has. */
  readonly ts?: string;
  /** What goes into the schema as it is. */
  readonly marks: Readonly<Record<string, unknown>>;
}

const MARKS: Readonly<Record<string, string>> = { open: 'x-kubernetes-preserve-unknown-fields' };

export function readText(text: string): Said {
  const space = text.indexOf(' ');
  const [head = '', ...marked] = (space < 0 ? text : text.slice(0, space)).split(';');
  const wrapper = /^(?:\[[^\]]*\]|\{\})/.exec(head)?.[0];
  const marks: Record<string, unknown> = {};
  for (const mark of marked) {
    const [, name = '', value] = /^([^=]+)(?:=(.*))?$/.exec(mark) ?? [];
    marks[MARKS[name] ?? name] = value === undefined ? true : readValue(name, value);
  }
  const { is, ts, always, ...rest } = marks;
  const values = (is ?? rest['enum']) as string[] | undefined;
  return {
    kind: head.slice(wrapper?.length ?? 0),
    ...(wrapper !== undefined && { wrapper }),
    ...(space >= 0 && { description: text.slice(space + 1) }),
    ...(values && { values }),
    isAlwaysThere: always === true,
    ...(typeof ts === 'string' && { ts }),
    marks: rest,
  };
}

function readValue(name: string, value: string): unknown {
  if (name === 'is' || name === 'enum') return value.split('|');
  return /^(\d+|true|false)$/.test(value) ? JSON.parse(value) : value;
}

/** What an object says of itself: its text has no kind. */
export const readObjectText = (text: string): Said => readText(text.startsWith(';') ? text : ` ${text}`);

export const isObject = (described: Described): described is Readonly<Record<string, Described>> =>
  typeof described === 'object' && !Array.isArray(described);

/** The members of an object, those of the definition that it builds on (`+`) first; a name that ends with `!` is required. */
export function membersOf(
  object: Readonly<Record<string, Described>>,
  definitionOf: (name: string) => Readonly<Record<string, Described>>,
): (readonly [name: string, member: Described, isRequired: boolean])[] {
  const { '': _, '+': base, ...members } = object;
  return [
    ...(typeof base === 'string' ? membersOf(definitionOf(base), definitionOf) : []),
    ...Object.entries(members).map(([name, member]) => {
      const isRequired = name.endsWith('!');
      return [isRequired ? name.slice(0, -1) : name, member, isRequired] as const;
    }),
  ];
}
