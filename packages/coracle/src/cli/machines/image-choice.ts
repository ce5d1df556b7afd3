/** What `--image` means: a name of the catalogue, a file, a URL, or a reference of a registry. */

import { existsSync } from 'node:fs';
import { isUrl } from '@coracle/node-agent/image/import-source';
import { isLocal, parseReference, referenceText } from '@coracle/runtime/oci/reference';
import { UsageError } from '../command.ts';
import { didYouMean } from '../suggestions.ts';
import { type CatalogueImage, catalogueImage, IMAGE_CATALOGUE } from './image-catalogue.ts';

export type ImageChoice =
  | { readonly kind: 'catalogue'; readonly image: CatalogueImage }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'reference'; readonly reference: string };

/** Reads it. Throws UsageError that says what it may have meant. */
export function chooseImage(text: string): ImageChoice {
  if (isUrl(text)) {
    const { protocol } = new URL(text);
    if (protocol === 'docker:') return reference(text.slice('docker://'.length));
    if (protocol !== 'http:' && protocol !== 'https:')
      throw new UsageError(`--image takes http and https URLs, not ${protocol}//`);
    return { kind: 'url', url: text };
  }
  const image = catalogueImage(text);
  if (image) return { kind: 'catalogue', image };
  if (/^(\.{0,2}|~)\//.test(text) || /\.(img|qcow2|raw)$/i.test(text) || (existsSync(text) && !text.includes(':')))
    return { kind: 'file', path: text };
  const names = IMAGE_CATALOGUE.flatMap(({ name }) => [name, name.split(':')[0]!]);
  // A bare word would be an image of Docker Hub, none of which is a disk.
  if (!text.includes('/'))
    throw new UsageError(
      `--image: no image is called ${text}${didYouMean(text, names)} (those known: coracle images; of a registry: REGISTRY/NAME)`,
    );
  return reference(text);
}

function reference(text: string): ImageChoice {
  try {
    return { kind: 'reference', reference: referenceText(parseReference(text)) };
  } catch (error) {
    throw new UsageError(`--image: ${(error as Error).message}`);
  }
}

/** True for a reference that only the local store has. */
export const isLocalReference = (text: string): boolean => isLocal(parseReference(text));
