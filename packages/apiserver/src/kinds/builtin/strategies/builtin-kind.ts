/** What a built-in kind says of itself. */
import type { KindStrategy, UpdateStrategy } from '@coracle/apimachinery/types/strategy';
import type { Validate } from '@coracle/apimachinery/validation/field-errors';

/** `validate` is asked about creates, and with the old object about updates. */
export interface BuiltinKind
  extends Omit<KindStrategy, 'statusSubresource' | 'validate' | 'validateUpdate' | 'subresources'> {
  readonly validate?: Validate;
  readonly subresources?: Readonly<Record<string, BuiltinSubresource>>;
}

/** Validated as the object is, unless it says otherwise. */
export interface BuiltinSubresource extends Partial<Omit<UpdateStrategy, 'validateUpdate'>> {
  readonly validate?: Validate;
}

/** Kinds that are otherwise than most, by plural name, behind their group where it is not the core group. */
export type Kinds = Readonly<Record<string, BuiltinKind>>;
