puts Time.at(0).strftime('%H %Z %z')
