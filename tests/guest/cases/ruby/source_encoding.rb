# -*- coding: iso-8859-1 -*-
p 'ä'.encoding, 'ä'.bytes
