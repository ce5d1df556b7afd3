/** What a kind makes of an object once, between its defaults and its store. */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';

/** The two moments. Either may set members of the object; what lies below them may be frozen. */
export interface Preparation {
  readonly create?: NonNullable<ResourceInfo['prepareCreate']>;
  readonly update?: NonNullable<ResourceInfo['prepareUpdate']>;
}
