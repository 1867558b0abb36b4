import { stopTestStores } from './global-setup.ts';

export default stopTestStores;
