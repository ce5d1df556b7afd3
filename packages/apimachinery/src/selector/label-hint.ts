/**
 * What a label selector asks of the bytes of an object. Most objects of a large kind are not parsed, and parsing one to
 * find that its labels are others takes ten times as long as looking for them in its JSON.
 */
import type { LabelRequirement, LabelSelector } from './label-selector.ts';

/** False when no object of these bytes can meet the selector; true says nothing. The bytes are JSON without blanks. */
export type LabelHint = (bytes: Uint8Array) => boolean;

/** Undefined for a selector that asks for nothing to be there. */
export function labelHint({ requirements, nothing }: LabelSelector): LabelHint | undefined {
  if (nothing) return () => false;
  const wanted = requirements.map(textsOf).filter((texts) => texts !== undefined);
  if (wanted.length === 0) return undefined;
  let finders: Finder[][] | undefined;
  return (bytes) => {
    finders ??= wanted.map((texts) => texts.map(finderOf));
    return finders.every((some) => some.some((find) => find(bytes)));
  };
}

/** Values looked for one by one; a list of more is left to the objects. */
const MAX_VALUES = 4;

/** Texts one of which is in every object that meets the requirement. */
function textsOf({ key, operator, values }: LabelRequirement): string[] | undefined {
  const name = `${JSON.stringify(key)}:`;
  switch (operator) {
    case '=':
    case '==':
    case 'in':
      return values.length > MAX_VALUES ? [name] : values.map((value) => `${name}${JSON.stringify(value)}`);
    case 'exists':
    case 'gt':
    case 'lt':
      return [name];
    case 'notin':
    case '!=':
    case '!':
      return undefined;
  }
}

type Finder = (bytes: Uint8Array) => boolean;

/** Looks for a text from its end, as Boyer, Moore and Horspool do: most bytes are never looked at. */
function finderOf(text: string): Finder {
  const wanted = new TextEncoder().encode(text);
  const last = wanted.length - 1;
  const skip = new Uint16Array(256).fill(Math.min(wanted.length, 0xffff));
  for (let i = 0; i < last; i++) skip[wanted[i]!] = Math.min(last - i, 0xffff);
  return (bytes) => {
    const { length } = bytes;
    for (let end = last; end < length; end += skip[bytes[end]!]!) {
      let i = 0;
      while (i <= last && bytes[end - i] === wanted[last - i]) i++;
      if (i > last) return true;
    }
    return false;
  };
}
