/** Annotation `config.kubernetes.io/depends-on`: which objects must be there and ready before. */
import type { ObjectRef } from '../kinds/kinds.ts';
import { refId } from './object-ref.ts';

/**
 * Reads it: a list with commas of `group/namespaces/NAMESPACE/KIND/NAME` or `group/KIND/NAME`; the core group is empty.
 * @throws Error for what is neither, and for one that is there twice
 */
export function parseDependsOn(text: string): ObjectRef[] {
  const seen = new Set<string>();
  return text.split(',').map((item) => {
    const ref = parseItem(item.trim());
    if (seen.has(refId(ref))) throw new Error(`duplicate dependency: ${item.trim()}`);
    seen.add(refId(ref));
    return ref;
  });
}

function parseItem(item: string): ObjectRef {
  const fields = item.split('/');
  const [group = '', second = '', third = '', fourth = '', fifth = ''] = fields;
  if (fields.length === 3 && second !== '' && third !== '') return { group, kind: second, namespace: '', name: third };
  if (fields.length === 5 && second === 'namespaces' && third !== '' && fourth !== '' && fifth !== '')
    return { group, kind: fourth, namespace: third, name: fifth };
  throw new Error(`${JSON.stringify(item)} is neither group/kind/name nor group/namespaces/namespace/kind/name`);
}
