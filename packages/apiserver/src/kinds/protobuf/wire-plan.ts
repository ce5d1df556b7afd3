import type { Codec } from './value-codecs.ts';

/** Fields by number, in ascending order: Go writes them so. */
export type MessagePlan = ReadonlyMap<number, WireField>;

/** One field of a message. */
export type WireField =
  | { readonly kind: 'one'; readonly property: string; readonly codec: Codec; readonly keepZero: boolean }
  | { readonly kind: 'list'; readonly property: string; readonly codec: Codec }
  | { readonly kind: 'map'; readonly property: string; readonly codec: Codec }
  /** A Go struct that JSON inlines: its fields are properties of the object around it. */
  | { readonly kind: 'inline'; readonly plan: MessagePlan };
