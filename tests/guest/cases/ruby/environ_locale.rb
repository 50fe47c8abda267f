p Encoding.default_external, Encoding.find('locale'), 'ä'.encoding
