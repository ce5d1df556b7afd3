/** What a built-in kind says of itself. */
import type { JsonObject } from '@coracle/apimachinery/types/read-value';
import type { KindStrategy, UpdateStrategy } from '@coracle/apimachinery/types/strategy';
import type { Validate } from '@coracle/apimachinery/validation/field-errors';

type Replaced =
  | 'statusSubresource'
  | 'subresources'
  | 'validate'
  | 'validateUpdate'
  | 'warningsOnCreate'
  | 'warningsOnUpdate';

/** `validate` and `warnings` are asked about creates, and with the old object about updates. */
export interface BuiltinKind extends Omit<KindStrategy, Replaced> {
  readonly validate?: Validate;
  readonly warnings?: (object: JsonObject, old?: JsonObject) => Iterable<string>;
  readonly subresources?: Readonly<Record<string, BuiltinSubresource>>;
}

/** Validated as the object is, unless it says otherwise. */
export interface BuiltinSubresource extends Partial<Omit<UpdateStrategy, 'validateUpdate'>> {
  readonly validate?: Validate;
}

/** Kinds that are otherwise than most, by plural name, behind their group where it is not the core group. */
export type Kinds = Readonly<Record<string, BuiltinKind>>;
